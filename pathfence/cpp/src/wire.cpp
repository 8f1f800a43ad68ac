// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/wire.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace temper::pathfence {
namespace {

constexpr std::size_t kBaggageBytes = 8192, kBaggageMembers = 64, kMaxVisits = 8, kMaxDigits = 9;

// A decimal number without sign, 1 to 9 digits; -1 for anything else.
std::int64_t number(const std::string& s) {
    std::int64_t n = -1;
    if (s.empty() || s.size() > kMaxDigits || !std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; })) return -1;
    std::from_chars(s.data(), s.data() + s.size(), n);
    return n;
}

std::vector<std::string> split(const std::string& s, char by) {
    std::vector<std::string> out;
    std::size_t from = 0;
    for (std::size_t to; (to = s.find(by, from)) != std::string::npos; from = to + 1) out.push_back(s.substr(from, to - from));
    out.push_back(s.substr(from));
    return out;
}

using Visits = std::vector<std::pair<std::string, std::int64_t>>;

// Empty also where it breaks a rule.
Visits read_visits(const std::string& s) {
    Visits out;
    if (s.empty()) return out;
    for (const auto& part : split(s, ';')) {
        const auto star = part.find('*');
        if (star == std::string::npos || out.size() == kMaxVisits) return {};
        const std::int64_t count = number(part.substr(star + 1));
        if (!valid_name(part.substr(0, star)) || count < 1) return {};
        out.emplace_back(part.substr(0, star), count);
    }
    return out;
}

std::string write_visits(const Visits& visits) {
    std::string out;
    for (const auto& [name, count] : visits) out += (out.empty() ? "" : ";") + name + "*" + std::to_string(count);
    return out;
}

Context checked_context(const std::string& path, const std::string& deadline, const std::string& visits) {
    Context c;
    if (valid_name(path)) c.path = path;
    if (const std::int64_t left = number(deadline); left > 0) c.timeout = std::min(left * kMillisecond, kLongest);
    c.visits = write_visits(read_visits(visits));
    return c;
}

// Empty where there is no time to state; what is left is rounded down, but stays a time.
std::string deadline_text(const Context& c) { return c.timeout > 0 ? std::to_string(std::max<Time>(1, c.timeout / kMillisecond)) : ""; }

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string percent_decoded(const std::string& s) {
    std::string out;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (s[i] == '%' && i + 2 < s.size() && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
            out += static_cast<char>(hex(s[i + 1]) * 16 + hex(s[i + 2]));
            i += 2;
        } else {
            out += s[i];
        }
    }
    return out;
}

std::string percent_encoded(const std::string& s) {
    static const char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : s) {
        if (c == ';' || c == '%') {
            out += '%';
            out += digits[static_cast<unsigned char>(c) >> 4];
            out += digits[c & 15];
        } else {
            out += c;
        }
    }
    return out;
}

std::string trimmed(const std::string& s) {
    const auto from = s.find_first_not_of(" \t");
    return from == std::string::npos ? "" : s.substr(from, s.find_last_not_of(" \t") - from + 1);
}

std::string get(const Headers& headers, const char* name) {
    const auto it = headers.find(name);
    return it == headers.end() ? "" : it->second;
}

}  // namespace

Context read_headers(const Headers& headers) { return checked_context(get(headers, "pf.path"), get(headers, "pf.deadline"), get(headers, "pf.visits")); }

void write_headers(const Context& c, Headers& headers) {
    const auto put = [&](const char* name, const std::string& value) {
        if (value.empty())
            headers.erase(name);
        else
            headers[name] = value;
    };
    put("pf.path", c.path);
    put("pf.deadline", deadline_text(c));
    put("pf.visits", c.visits);
}

Context read_baggage(const std::string& header) {
    if (header.size() > kBaggageBytes) return {};
    const auto members = split(header, ',');
    if (members.size() > kBaggageMembers) return {};
    Headers found;
    for (const auto& member : members) {
        const auto equals = member.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = trimmed(member.substr(0, equals));
        if (name.compare(0, 3, "pf.") == 0) found.emplace(name, percent_decoded(trimmed(member.substr(equals + 1, member.find(';', equals) - equals - 1))));
    }
    return read_headers(found);
}

std::string write_baggage(const Context& context) {
    Headers headers;
    write_headers(context, headers);
    std::string out;
    for (const auto& [name, value] : headers) out += (out.empty() ? "" : ",") + name + "=" + percent_encoded(value);
    return out;
}

std::string join_name(const Context& c, const std::string& method) { return "pf!" + c.path + "!" + deadline_text(c) + "!" + c.visits + "!" + method; }

Context split_name(std::string& method) {
    const auto service = method.find(":pf!");
    const std::size_t from = method.compare(0, 3, "pf!") == 0 ? 0 : service == std::string::npos ? std::string::npos : service + 1;
    if (from == std::string::npos) return {};
    const auto parts = split(method.substr(from), '!');
    if (parts.size() != 5) return {};
    method = method.substr(0, from) + parts[4];
    return checked_context(parts[1], parts[2], parts[3]);
}

std::int64_t depth_of(const Context& context, const std::string& service) {
    for (const auto& [name, count] : read_visits(context.visits))
        if (name == service) return count;
    return 0;
}

Context onward(Context context, const std::string& service, Time used) {
    if (context.timeout > 0) context.timeout = std::max<Time>(1, context.timeout - used);
    if (service.empty()) return context;
    Visits visits = read_visits(context.visits);
    const auto own = std::find_if(visits.begin(), visits.end(), [&](const auto& v) { return v.first == service; });
    if (own != visits.end()) {
        ++own->second;
    } else {
        if (visits.size() == kMaxVisits) visits.erase(visits.begin());
        visits.emplace_back(service, 1);
    }
    context.visits = write_visits(visits);
    return context;
}

Context untrusted(Context context) {
    context.path.clear();
    context.visits.clear();
    return context;
}

}  // namespace temper::pathfence
