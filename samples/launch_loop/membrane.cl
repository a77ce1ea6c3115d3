// A stretched membrane: a float of height and one of speed per point, row by row, one work-item per
// point. The edge stays at rest. One workgroup has all points, so kernels need not read the grid.
//
// Sums and products have a fixed order and are each rounded once: the host computes the same bits
// (membrane.cpp).
#pragma OPENCL FP_CONTRACT OFF

#define MEMBRANE kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

typedef struct {
  float row, column;  // its position
  float reach;        // one over the square of the distance at which its pull ends
  float pull;
} Mount;

typedef struct {
  Mount mounts[32];
} Mounts;  // 512 bytes of arguments

static uint row_of(uint point, uint width) { return point / width; }
static bool is_inside(uint point, uint width) {
  const uint row = row_of(point, width), column = point - row * width;
  return row != 0 && row + 1 != width && column != 0 && column + 1 != width;
}

// The host's action on the membrane in this step.
MEMBRANE actuate(global float* speed, global const float* actions, uint width) {
  const uint point = get_local_id(0);
  if (is_inside(point, width)) speed[point] = speed[point] + actions[point];
}

// A gust with another strength in every launch.
MEMBRANE wind(global float* speed, uint width, float strength) {
  const uint point = get_local_id(0);
  if (is_inside(point, width))
    speed[point] = speed[point] + strength * (float)(row_of(point, width) + 1);
}

MEMBRANE tension(global float* speed, global const float* height, uint width, float stiffness,
                 float damping) {
  const uint point = get_local_id(0);
  if (!is_inside(point, width)) return;
  const float across = height[point - 1] + height[point + 1];
  const float along = height[point - width] + height[point + width];
  const float bend = (across + along) - 4.0f * height[point];
  speed[point] = damping * speed[point] + stiffness * bend;
}

MEMBRANE drift(global float* height, global const float* speed, uint width, float time_step) {
  const uint point = get_local_id(0);
  if (is_inside(point, width)) height[point] = height[point] + time_step * speed[point];
}

// 32 springs, each of which holds the points around it.
MEMBRANE hold(global float* speed, global const float* height, uint width, Mounts at) {
  const uint point = get_local_id(0);
  if (!is_inside(point, width)) return;
  const float row = (float)row_of(point, width),
              column = (float)(point - row_of(point, width) * width);
  float hold = 0.0f;
#pragma unroll
  for (uint i = 0; i < 32; ++i) {
    const Mount mount = at.mounts[i];
    const float down = row - mount.row, right = column - mount.column;
    const float near = 1.0f - (down * down + right * right) * mount.reach;
    hold = hold + (near > 0.0f ? near * mount.pull : 0.0f);
  }
  speed[point] = speed[point] - hold * height[point];
}

// The host's observation of a step, by row: the sum of the heights and the sum of the squares of
// the speeds.
MEMBRANE observe(global float* observation, global const float* height, global const float* speed,
                 uint width) {
  const uint row = get_local_id(0);
  if (row >= width) return;
  float heights = 0.0f, energy = 0.0f;
  for (uint i = row * width; i < (row + 1) * width; ++i) {
    heights = heights + height[i];
    energy = energy + speed[i] * speed[i];
  }
  observation[2 * row] = heights;
  observation[2 * row + 1] = energy;
}
