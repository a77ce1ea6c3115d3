/* linux/kfd_ioctl.h includes <drm/drm.h>, which Debian's kernel headers leave to libdrm-dev, where it has another path. */
#include <libdrm/drm.h>
