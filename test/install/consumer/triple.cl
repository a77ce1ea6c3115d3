kernel void triple(global uint* values) { values[get_global_id(0)] *= 3; }
