// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/config.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "file.h"
#include "json.h"

namespace temper::pathfence {
namespace {

constexpr std::int64_t kMaxWorkers = 4096;

void fill(std::int64_t& value, std::int64_t standard) {
    if (value == 0) value = standard;
}

void bound(const std::string& name, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
        throw ConfigError(name + " is " + std::to_string(value) + "; it must be " + std::to_string(low) + " to " + std::to_string(high));
}

void check_classes(Config& c) {
    std::set<std::string> names, keys;
    for (auto& k : c.classes) {
        fill(k.weight, 100);
        fill(k.target, c.target);
        if (!valid_name(k.name) || k.name[0] == '~' || !names.insert(k.name).second)
            throw ConfigError("class name \"" + k.name + "\" is not valid, or given twice");
        const std::string of = "class " + k.name + ": ";
        bound(of + "weight", k.weight, 1, 1000);
        bound(of + "target_ns", k.target, kMillisecond, kLongest);
        bound(of + "limit", k.limit, 0, kMaxWorkers);
        bound(of + "hold_ns", k.hold, 0, kLongest);
        for (const auto& key : k.keys)
            if (!valid_name(key) || !keys.insert(key).second) throw ConfigError(of + "key \"" + key + "\" is not valid, or given twice");
    }
}

using Kind = json::Value::Kind;
using Reader = std::function<void(const json::Value&)>;

const json::Value& of(const json::Value& v, Kind kind, const std::string& name) {
    if (v.kind != kind) throw ConfigError(name + " is of the wrong kind");
    return v;
}

Reader integer(std::int64_t& to, const char* name) {
    return [&to, name](const json::Value& v) { to = of(v, Kind::integer, name).integer; };
}

Reader boolean(bool& to, const char* name) {
    return [&to, name](const json::Value& v) { to = of(v, Kind::boolean, name).boolean; };
}

void read(const json::Value& object, const std::string& what, const std::map<std::string, Reader>& readers) {
    for (const auto& [name, v] : of(object, Kind::object, what).members) {
        const auto r = readers.find(name);
        if (r == readers.end()) throw ConfigError(what + " has no key \"" + name + "\"");
        r->second(v);
    }
}

ClassConfig read_class(const json::Value& v) {
    ClassConfig k;
    read(v, "a class", {
        {"name", [&](const json::Value& n) { k.name = of(n, Kind::text, "name").text; }},
        {"keys", [&](const json::Value& keys) {
            for (const auto& key : of(keys, Kind::list, "keys").list) k.keys.push_back(of(key, Kind::text, "a key").text);
        }},
        {"weight", integer(k.weight, "weight")},
        {"target_ns", integer(k.target, "target_ns")},
        {"limit", integer(k.limit, "limit")},
        {"hold_ns", integer(k.hold, "hold_ns")},
    });
    return k;
}

}  // namespace

std::string contents(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw ConfigError("cannot read " + file);
    try {
        return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    } catch (const std::ios_base::failure& e) {
        throw ConfigError("cannot read " + file + ": " + e.what());
    }
}

bool valid_name(const std::string& name) {
    if (name.empty() || name.size() > kMaxName) return false;
    for (const char c : name)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c != 0 && std::strchr("._/:+-~", c))))
            return false;
    return true;
}

Config checked(Config c) {
    fill(c.window, 100 * kMillisecond);
    fill(c.target, 1000 * kMillisecond);
    fill(c.grace, 20 * kMillisecond);
    fill(c.gamma_permille, 3000);
    fill(c.queue_max, 8192);
    fill(c.stall, 20 * kMillisecond);
    fill(c.panic, 50 * kMillisecond);
    fill(c.unknown_buckets, 8);
    bound("workers", c.workers, 1, kMaxWorkers);
    bound("window_ns", c.window, kMillisecond, 1000 * kMillisecond);
    bound("target_ns", c.target, kMillisecond, kLongest);
    bound("grace_ns", c.grace, 0, 10'000 * kMillisecond);
    bound("gamma_permille", c.gamma_permille, 0, 10'000);
    bound("queue_max", c.queue_max, 1, 1 << 20);
    bound("stall_ns", c.stall, kMillisecond, 60'000 * kMillisecond);
    bound("panic_ns", c.panic, kMillisecond, 60'000 * kMillisecond);
    bound("unknown_buckets", c.unknown_buckets, 1, 32);
    bound("the number of classes", static_cast<std::int64_t>(c.classes.size()), 0, 32);
    check_classes(c);
    return c;
}

Config parse_config(const std::string& text) try {
    Config c;
    read(json::parse(text), "the configuration", {
        {"workers", integer(c.workers, "workers")},
        {"window_ns", integer(c.window, "window_ns")},
        {"target_ns", integer(c.target, "target_ns")},
        {"grace_ns", integer(c.grace, "grace_ns")},
        {"gamma_permille", integer(c.gamma_permille, "gamma_permille")},
        {"queue_max", integer(c.queue_max, "queue_max")},
        {"stall_ns", integer(c.stall, "stall_ns")},
        {"panic_ns", integer(c.panic, "panic_ns")},
        {"unknown_buckets", integer(c.unknown_buckets, "unknown_buckets")},
        {"off", boolean(c.off, "off")},
        {"classes", [&](const json::Value& v) {
            for (const auto& k : of(v, Kind::list, "classes").list) c.classes.push_back(read_class(k));
        }},
        {"without", [&](const json::Value& v) {
            read(v, "without", {
                {"no_lend", boolean(c.without.lend, "no_lend")},
                {"no_protect", boolean(c.without.protect, "no_protect")},
                {"no_shed", boolean(c.without.shed, "no_shed")},
                {"no_newest", boolean(c.without.newest, "no_newest")},
                {"no_learn", boolean(c.without.learn, "no_learn")},
                {"no_excite", boolean(c.without.excite, "no_excite")},
                {"no_panic", boolean(c.without.panic, "no_panic")},
            });
        }},
    });
    return c;
} catch (const json::Error& e) {
    throw ConfigError(e.what());
}

Config load_config(std::string file) {
    const auto variable = [](const char* name) -> std::string {
        const char* v = std::getenv(name);
        return v ? v : "";
    };
    if (file.empty()) file = variable("PATHFENCE_CONFIG");
    Config c = file.empty() ? Config{} : parse_config(contents(file));
    if (const std::string w = variable("PATHFENCE_WORKERS"); !w.empty()) {
        const json::Value v = [&] {
            try {
                return json::parse(w);
            } catch (const json::Error&) {
                return json::Value{};
            }
        }();
        c.workers = of(v, Kind::integer, "PATHFENCE_WORKERS").integer;
    }
    if (const std::string off = variable("PATHFENCE_OFF"); !off.empty()) {
        if (off != "0" && off != "1") throw ConfigError("PATHFENCE_OFF is neither 0 nor 1");
        c.off = off == "1";
    }
    return checked(c);
}

}  // namespace temper::pathfence
