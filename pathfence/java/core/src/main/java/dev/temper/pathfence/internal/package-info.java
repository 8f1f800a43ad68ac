// SPDX-License-Identifier: Apache-2.0
/** What the modules share. It is not for users, and may change with any version. */
package dev.temper.pathfence.internal;
