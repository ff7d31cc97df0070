// SPDX-License-Identifier: GPL-2.0
/* The product's hook_helpers.c, compiled among these modules' objects instead of its own. */
#include "../../../rust/net/hook_helpers.c"
