// SPDX-License-Identifier: GPL-2.0
/* The product's layout.c, compiled among these modules' objects instead of its own. */
#include "../../../rust/net/layout.c"
