// SPDX-License-Identifier: Apache-2.0
// Replays the test vectors: argv has a vector's file, or several.
#include <fstream>
#include <iostream>
#include <iterator>

#include "json.h"
#include "temper/pathfence/core.h"

namespace {

using namespace temper::pathfence;
using json::Value;

std::string show(const Decision& d) {
    static const char* const kinds[] = {"grant", "shed", "limit", "stop"};
    std::string s = kinds[static_cast<int>(d.kind)];
    s += " id " + std::to_string(d.id) + " class " + d.of->name + " limit " + std::to_string(d.limit);
    return s + (d.lent ? " lent" : "") + " " + d.reason;
}

std::string show(const Value& v) {
    std::string s = v["do"].text + " id " + std::to_string(v["id"].integer) + " class " + v["class"].text + " limit " + std::to_string(v["limit"].integer);
    return s + (v["lent"].boolean ? " lent" : "") + " " + v["reason"].text;
}

std::string show(const ClassState& s) {
    std::string out = s.name;
    for (const auto n : {s.limit, s.reserve, s.in_flight, s.queued, s.lent, s.granted, s.shed, s.missed, s.failed, s.knee, s.hold}) out += " " + std::to_string(n);
    return out + " " + s.reason;
}

std::string show_state(const Value& v) {
    std::string out = v["class"].text;
    for (const char* k : {"limit", "reserve", "in_flight", "queued", "lent", "granted", "shed", "missed", "failed", "knee", "hold_ns"}) out += " " + std::to_string(v[k].integer);
    return out + " " + v["reason"].text;
}

template <class T>
std::string all(const std::vector<T>& items) {
    std::string out;
    for (const auto& i : items) out += "  " + show(i) + "\n";
    return out;
}

// Configurations stand in the vectors as objects; the library reads text.
std::string text(const Value& v) {
    switch (v.kind) {
    case Value::Kind::boolean: return v.boolean ? "true" : "false";
    case Value::Kind::integer: return std::to_string(v.integer);
    case Value::Kind::text: return '"' + v.text + '"';
    case Value::Kind::list: {
        std::string s = "[";
        for (const auto& i : v.list) s += (s.size() > 1 ? "," : "") + text(i);
        return s + "]";
    }
    case Value::Kind::object: {
        std::string s = "{";
        for (const auto& [name, m] : v.members) s += (s.size() > 1 ? ",\"" : "\"") + name + "\":" + text(m);
        return s + "}";
    }
    case Value::Kind::null: break;
    }
    return "null";
}

Outcome outcome(const std::string& s) { return s == "fail" ? Outcome::fail : s == "cancel" ? Outcome::cancel : s == "light" ? Outcome::light : Outcome::ok; }

bool replay(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    const Value v = json::parse({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
    Core core(parse_config(text(v["config"])), 0);
    std::size_t number = 0;
    for (const Value& s : v["steps"].list) {
        const std::string& what = s["do"].text;
        const Time at = s["at"].integer;
        const std::int64_t id = s["id"].integer;
        Core::Decisions got;
        bool refused = false;
        std::string states, want_states;
        if (what == "arrive")
            got = core.arrive(at, {id, s["key"].text, s["deadline"].integer, s["shortens"].boolean, s["depth"].integer, s["parent"].integer});
        else if (what == "resume")
            got = core.resume(at, id, s["key"].text);
        else if (what == "done")
            got = core.done(at, id, outcome(s["outcome"].text));
        else if (what == "edge")
            got = core.edge(at, id, s["edge"].text);
        else if (what == "tick")
            got = core.tick(at);
        else if (what == "reload")
            got = core.reload(at, parse_config(text(s["config"])), refused);
        else if (what == "off" || what == "on")
            got = core.off(at, what == "off");
        else if (what == "state")
            states = all(core.states());
        else
            throw std::runtime_error("no step does " + what);
        for (const Value& w : s["states"].list) want_states += "  " + show_state(w) + "\n";
        const std::string want = all(s["then"].list);
        if (all(got) != want || states != want_states || refused != s["refused"].boolean) {
            std::cerr << file << ": step " << number << " (" << text(s) << ")\nwanted:\n" << want << want_states << "got:\n" << all(got) << states;
            return false;
        }
        ++number;
    }
    if (number == 0) std::cerr << file << " has no steps\n";
    return number > 0;
}

}  // namespace

int main(int argc, char** argv) {
    bool ok = argc > 1;
    for (int i = 1; i < argc; ++i) ok = replay(argv[i]) && ok;
    return ok ? 0 : 1;
}
