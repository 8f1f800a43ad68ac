// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace temper::pathfence {

// All that a file says. Throws ConfigError, where it cannot be read.
std::string contents(const std::string& file);

}  // namespace temper::pathfence
