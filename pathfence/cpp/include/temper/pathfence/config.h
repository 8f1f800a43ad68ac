// SPDX-License-Identifier: Apache-2.0
// What an operator sets; ../../../../spec/algorithm.md#configuration has the meaning of each key.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace temper::pathfence {

// Nanoseconds of a monotonic clock.
using Time = std::int64_t;

constexpr Time kMillisecond = 1'000'000;
constexpr Time kLongest = 600'000 * kMillisecond;  // time that a request may have

struct ClassConfig {
    std::string name;
    std::vector<std::string> keys;
    std::int64_t weight = 0;
    Time target = 0;
    std::int64_t limit = 0;
    Time hold = 0;
};

// Switches single parts off, for benchmarks.
struct Without {
    bool lend = false, protect = false, shed = false, newest = false, learn = false, excite = false, panic = false;
};

// Zero means the default.
struct Config {
    std::int64_t workers = 0;
    Time window = 0, target = 0, grace = 0;
    std::int64_t gamma_permille = 0, queue_max = 0;
    Time stall = 0, panic = 0;
    std::int64_t unknown_buckets = 0;
    std::vector<ClassConfig> classes;
    bool off = false;
    Without without;
};

struct ConfigError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Fills in the defaults; throws ConfigError where a value is out of bounds.
Config checked(Config config);

// Reads the JSON of a configuration. Throws ConfigError, also for keys that do not exist.
Config parse_config(const std::string& json);

// The configuration of a file, and what the environment says on top: PATHFENCE_CONFIG (the file, if none is given),
// PATHFENCE_WORKERS, PATHFENCE_OFF (1 or 0). Throws ConfigError.
Config load_config(std::string file = {});

// Whether a key, an edge or a class may have this name: 1 to kMaxName bytes of a-z A-Z 0-9 . _ / : + - ~
constexpr std::size_t kMaxName = 64;
bool valid_name(const std::string& name);

}  // namespace temper::pathfence
