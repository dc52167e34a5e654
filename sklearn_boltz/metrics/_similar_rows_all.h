/* The kernel for codes of one byte, and for columns with more than 256 values. */
#define CODE uint8_t
#define SUFFIX _u8
#include "metrics/_similar_rows.h"

#define CODE uint32_t
#define SUFFIX _u32
#include "metrics/_similar_rows.h"
