/* linux/kfd_ioctl.h includes <drm/drm.h>. Debian's kernel headers lack it; libdrm-dev has it under
 * another path. */
#include <libdrm/drm.h>
