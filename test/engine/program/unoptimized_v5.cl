// Compiled without optimization: every kernel then declares every hidden argument.
kernel void geometry(global uint* out, uint add) {
  global uint* const mine = out + get_global_id(0) * 4;
  mine[0] = get_local_size(0) + add;
  mine[1] = get_global_size(0);
  mine[2] = get_num_groups(0);
  mine[3] = get_work_dim();
}
