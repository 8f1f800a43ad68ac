// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/state.h"

#include <cstdio>

namespace temper::pathfence {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < ' ') {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
            out += escape;
        } else {
            out += c;
        }
    }
    return out + '"';
}

struct Member {
    const char* name;
    std::int64_t ClassState::*value;
};

constexpr Member kMembers[] = {
    {"limit", &ClassState::limit},     {"reserve", &ClassState::reserve}, {"inFlight", &ClassState::in_flight},
    {"queued", &ClassState::queued},   {"lent", &ClassState::lent},       {"granted", &ClassState::granted},
    {"shed", &ClassState::shed},       {"missed", &ClassState::missed},   {"failed", &ClassState::failed},
    {"knee", &ClassState::knee},       {"hold", &ClassState::hold},
};

struct Metric {
    const char *name, *type, *help;
    std::int64_t ClassState::*value;
};

constexpr Metric kMetrics[] = {
    {"limit", "gauge", "the most that may be in flight", &ClassState::limit},
    {"reserve", "gauge", "workers that it has a right to", &ClassState::reserve},
    {"in_flight", "gauge", "workers that it has", &ClassState::in_flight},
    {"queued", "gauge", "requests that wait", &ClassState::queued},
    {"lent", "gauge", "workers beyond its reserve", &ClassState::lent},
    {"knee", "gauge", "smallest concurrency on the plateau of goodput", &ClassState::knee},
    {"hold", "gauge", "seconds that a request keeps its worker", &ClassState::hold},
    {"granted_total", "counter", "requests that were given a worker", &ClassState::granted},
    {"shed_total", "counter", "requests that were refused", &ClassState::shed},
    {"missed_total", "counter", "requests that ended after their deadline", &ClassState::missed},
    {"failed_total", "counter", "requests that failed", &ClassState::failed},
};

struct PoolMetric {
    const char *name, *help;
    std::int64_t (*value)(const State&);
};

constexpr PoolMetric kPoolMetrics[] = {
    {"workers", "the pool", [](const State& s) { return s.workers; }},
    {"off", "1 if the fence is switched off: the plain pool", [](const State& s) { return std::int64_t{s.off}; }},
    {"config_error", "1 if the watched configuration is not in force",
     [](const State& s) { return std::int64_t{!s.watch_error.empty()}; }},
};

std::string head(const std::string& name, const char* type, const char* help) {
    return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

std::string number(const Metric& metric, std::int64_t value) {
    if (metric.value != &ClassState::hold) return std::to_string(value);
    char text[32];
    std::snprintf(text, sizeof(text), "%.9f", static_cast<double>(value) / 1e9);
    return text;
}

}  // namespace

std::string to_json(const State& state) {
    std::string out = std::string("{\"off\":") + (state.off ? "true" : "false") + ",\"workers\":" + std::to_string(state.workers) +
                      ",\"inFlight\":" + std::to_string(state.in_flight) + ",\"waiting\":" + std::to_string(state.waiting) +
                      ",\"watchError\":" + (state.watch_error.empty() ? "null" : quoted(state.watch_error)) + ",\"classes\":[";
    for (const ClassState& c : state.classes) {
        if (out.back() == '}') out += ',';
        out += "{\"name\":" + quoted(c.name);
        for (const Member& m : kMembers) out += std::string(",\"") + m.name + "\":" + std::to_string(c.*m.value);
        out += ",\"reason\":" + quoted(c.reason) + ",\"keys\":[";
        for (const std::string& key : c.keys) out += (out.back() == '[' ? "" : ",") + quoted(key);
        out += "]}";
    }
    return out + "]}\n";
}

std::string to_metrics(const State& state) {
    std::string out;
    for (const PoolMetric& m : kPoolMetrics) {
        const std::string name = std::string("pathfence_") + m.name;
        out += head(name, "gauge", m.help) + name + " " + std::to_string(m.value(state)) + "\n";
    }
    for (const Metric& m : kMetrics) {
        const std::string name = std::string("pathfence_") + m.name;
        out += head(name, m.type, m.help);
        for (const ClassState& c : state.classes) out += name + "{class=\"" + c.name + "\"} " + number(m, c.*m.value) + "\n";
    }
    return out;
}

}  // namespace temper::pathfence
