/* The kernels for both element types. */
#define REAL float
#define SUFFIX _f32
#include "networks/features/_lines.h"

#define REAL double
#define SUFFIX _f64
#include "networks/features/_lines.h"
