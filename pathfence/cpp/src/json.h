// SPDX-License-Identifier: Apache-2.0
// As much JSON as configurations and test vectors need: numbers are 64-bit integers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace temper::pathfence::json {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Value {
    enum class Kind { null, boolean, integer, text, list, object } kind = Kind::null;
    bool boolean = false;
    std::int64_t integer = 0;
    std::string text;
    std::vector<Value> list;
    std::vector<std::pair<std::string, Value>> members;

    // The member of that name, or null.
    const Value& operator[](const std::string& name) const;
};

Value parse(const std::string& text);

}  // namespace temper::pathfence::json
