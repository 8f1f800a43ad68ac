// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <charconv>

namespace temper::pathfence::json {
namespace {

constexpr int kDeepest = 32;

class Parser {
public:
    explicit Parser(const std::string& text) : at_(text.data()), end_(at_ + text.size()) {}

    Value whole() {
        Value v = value(0);
        blank();
        if (at_ != end_) fail("something follows the value");
        return v;
    }

private:
    [[noreturn]] static void fail(const std::string& what) { throw Error("JSON: " + what); }

    void blank() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    char peek() {
        blank();
        if (at_ == end_) fail("it ends too early");
        return *at_;
    }

    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }

    void need(char c) {
        if (!take(c)) fail(std::string("expected ") + c);
    }

    bool word(const char* w) {
        const std::string s(w);
        if (static_cast<std::size_t>(end_ - at_) < s.size() || std::string(at_, at_ + s.size()) != s) return false;
        at_ += s.size();
        return true;
    }

    Value value(int depth) {
        if (depth > kDeepest) fail("it is nested too deeply");
        Value v;
        switch (peek()) {
        case '{':
            object(v, depth);
            break;
        case '[':
            list(v, depth);
            break;
        case '"':
            v.kind = Value::Kind::text;
            v.text = text();
            break;
        case 't':
        case 'f':
            v.kind = Value::Kind::boolean;
            v.boolean = *at_ == 't';
            if (!word(v.boolean ? "true" : "false")) fail("an unknown word");
            break;
        case 'n':
            if (!word("null")) fail("an unknown word");
            break;
        default:
            v.kind = Value::Kind::integer;
            v.integer = integer();
        }
        return v;
    }

    void object(Value& v, int depth) {
        v.kind = Value::Kind::object;
        need('{');
        if (take('}')) return;
        do {
            if (peek() != '"') fail("expected a name");
            std::string name = text();
            for (const auto& [other, unused] : v.members)
                if (other == name) fail("the name \"" + name + "\" a second time");
            need(':');
            v.members.emplace_back(std::move(name), value(depth + 1));
        } while (take(','));
        need('}');
    }

    void list(Value& v, int depth) {
        v.kind = Value::Kind::list;
        need('[');
        if (take(']')) return;
        do v.list.push_back(value(depth + 1));
        while (take(','));
        need(']');
    }

    std::int64_t integer() {
        std::int64_t n = 0;
        const auto [next, error] = std::from_chars(at_, end_, n);
        if (error != std::errc() || (next != end_ && (*next == '.' || *next == 'e' || *next == 'E'))) fail("expected a whole number");
        at_ = next;
        return n;
    }

    std::string text() {
        need('"');
        std::string out;
        for (;;) {
            if (at_ == end_) fail("a text without its end");
            const char c = *at_++;
            if (c == '"') return out;
            if (c != '\\') {
                out += c;
                continue;
            }
            if (at_ == end_) fail("a text without its end");
            escape(out, *at_++);
        }
    }

    void escape(std::string& out, char c) {
        switch (c) {
        case 'n': out += '\n'; return;
        case 't': out += '\t'; return;
        case 'r': out += '\r'; return;
        case 'b': out += '\b'; return;
        case 'f': out += '\f'; return;
        case '"':
        case '\\':
        case '/': out += c; return;
        case 'u': break;
        default: fail("an unknown escape");
        }
        unsigned u = 0;
        if (end_ - at_ < 4 || std::from_chars(at_, at_ + 4, u, 16).ptr != at_ + 4) fail("expected four hexadecimal digits");
        at_ += 4;
        if (u < 0x80) {
            out += static_cast<char>(u);
        } else if (u < 0x800) {
            out += static_cast<char>(0xc0 | u >> 6);
            out += static_cast<char>(0x80 | (u & 0x3f));
        } else {
            out += static_cast<char>(0xe0 | u >> 12);
            out += static_cast<char>(0x80 | (u >> 6 & 0x3f));
            out += static_cast<char>(0x80 | (u & 0x3f));
        }
    }

    const char* at_;
    const char* end_;
};

}  // namespace

const Value& Value::operator[](const std::string& name) const {
    static const Value none;
    for (const auto& [n, v] : members)
        if (n == name) return v;
    return none;
}

Value parse(const std::string& text) { return Parser(text).whole(); }

}  // namespace temper::pathfence::json
