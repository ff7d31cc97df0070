// SPDX-License-Identifier: GPL-2.0
/* The product's tcp_helpers.c, compiled among these modules' objects instead of its own. */
#include "../../../rust/net/tcp_helpers.c"
