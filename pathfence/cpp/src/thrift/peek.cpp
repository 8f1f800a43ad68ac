// SPDX-License-Identifier: Apache-2.0
// Reads what a message says of itself, without taking it from its transport.
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "temper/pathfence/thrift/server.h"

namespace temper::pathfence::thrift {
namespace {

namespace at = apache::thrift;

constexpr std::size_t kMostInfo = 64;  // headers of a message

// Bytes that end; reading past the end throws.
struct Bytes {
    const std::uint8_t* at;
    const std::uint8_t* end;

    std::uint8_t byte() {
        if (at == end) throw std::out_of_range("the message ends");
        return *at++;
    }
    std::uint32_t fixed(int bytes) {
        std::uint32_t v = 0;
        while (bytes-- > 0) v = v << 8 | byte();
        return v;
    }
    std::uint32_t varint() {
        std::uint32_t v = 0;
        for (int shift = 0; shift < 35; shift += 7) {
            const std::uint8_t b = byte();
            v |= static_cast<std::uint32_t>(b & 0x7f) << shift;
            if (!(b & 0x80)) return v;
        }
        throw std::out_of_range("a number without its end");
    }
    std::string text() {
        const std::uint32_t size = varint();
        if (static_cast<std::size_t>(end - at) < size) throw std::out_of_range("the message ends");
        const auto from = reinterpret_cast<const char*>(at);
        at += size;
        return {from, size};
    }
};

// THeader: its info headers, and the message behind it.
Headers read_theader(Bytes& b, bool& plain) {
    b.fixed(2 + 2 + 4);
    const std::size_t size = b.fixed(2) * 4;
    if (static_cast<std::size_t>(b.end - b.at) < size) throw std::out_of_range("the message ends");
    Bytes head{b.at, b.at + size};
    b.at += size;
    Headers out;
    head.varint();  // the protocol, which the message shows itself
    const std::uint32_t transforms = head.varint();
    plain = transforms == 0;
    for (std::uint32_t i = 0; i < transforms; ++i) head.varint();
    while (head.at != head.end) {
        const std::uint32_t kind = head.varint();
        if (kind != 1) break;  // padding, or nothing that is known
        const std::uint32_t count = head.varint();
        for (std::uint32_t i = 0; i < count && out.size() < kMostInfo; ++i) {
            std::string name = head.text();
            out.emplace(std::move(name), head.text());
        }
    }
    return out;
}

// Looks for a map<string,string> among a method's arguments; the last one counts.
Headers read_carrier(at::protocol::TProtocol& in) {
    Headers found;
    std::string name;
    at::protocol::TType type, key, value;
    std::int16_t id;
    in.readStructBegin(name);
    for (;;) {
        in.readFieldBegin(name, type, id);
        if (type == at::protocol::T_STOP) return found;
        if (type != at::protocol::T_MAP) {
            in.skip(type);
        } else {
            std::uint32_t size = 0;
            Headers map;
            in.readMapBegin(key, value, size);
            const bool strings = size > 0 && key == at::protocol::T_STRING && value == at::protocol::T_STRING;
            for (std::uint32_t i = 0; i < size; ++i) {
                if (strings) {
                    std::string k, v;
                    in.readString(k);
                    in.readString(v);
                    if (k.compare(0, 3, "pf.") == 0) map.emplace(std::move(k), std::move(v));
                } else {
                    in.skip(key);
                    in.skip(value);
                }
            }
            in.readMapEnd();
            if (strings) found = std::move(map);
        }
        in.readFieldEnd();
    }
}

void merge(Context& to, Context from) {
    if (to.path.empty()) to.path = std::move(from.path);
    if (to.timeout == 0) to.timeout = from.timeout;
    if (to.visits.empty()) to.visits = std::move(from.visits);
}

// The name of a message in strict binary; false for another one. It needs no protocol, which costs more than all that is
// read here.
bool read_name(Bytes b, std::string& name) {
    if (b.fixed(2) != 0x8001) return false;
    b.fixed(2);
    const std::size_t size = b.fixed(4);
    if (static_cast<std::size_t>(b.end - b.at) < size) return false;
    name.assign(reinterpret_cast<const char*>(b.at), size);
    return true;
}

// Takes what stands before the method's name off it.
void read_prefix(Incoming& to) {
    if (to.method.find('!') == std::string::npos) return;
    const std::size_t size = to.method.size();
    merge(to.context, split_name(to.method));
    to.prefixed = to.method.size() != size;
}

// The message's name, and what its arguments carry.
void read_message(const Bytes& b, const Listener& listener, Incoming& to) {
    if (!listener.carrier && read_name(b, to.method)) return read_prefix(to);
    auto memory = std::make_shared<at::transport::TMemoryBuffer>(const_cast<std::uint8_t*>(b.at), static_cast<std::uint32_t>(b.end - b.at));
    std::shared_ptr<at::protocol::TProtocol> in;
    if (b.at != b.end && *b.at == 0x82)
        in = std::make_shared<at::protocol::TCompactProtocol>(memory);
    else
        in = std::make_shared<at::protocol::TBinaryProtocol>(memory);
    at::protocol::TMessageType type;
    std::int32_t sequence;
    in->readMessageBegin(to.method, type, sequence);
    read_prefix(to);
    if (listener.carrier) merge(to.context, read_headers(read_carrier(*in)));
}

}  // namespace

Incoming peek(const std::uint8_t* bytes, std::size_t size, const Listener& listener) {
    Incoming out;
    try {
        Bytes b{bytes, bytes + size};
        bool plain = true;
        if (size >= 2 && bytes[0] == 0x0f && bytes[1] == 0xff) out.context = read_headers(read_theader(b, plain));
        if (plain) read_message(b, listener, out);
    } catch (const std::exception&) {
        // What was read up to here is what is known; the server itself will say what is wrong with the message.
    }
    if (!listener.trusted && !(out.context.path.empty() && out.context.visits.empty())) out.context = untrusted(std::move(out.context));
    return out;
}

Call call_of(const Incoming& in, const Listener& listener) {
    const std::string* key = &in.context.path;
    if (key->empty()) {
        const auto known = listener.keys.find(in.method);
        key = known == listener.keys.end() ? &in.method : &known->second;
    }
    return {*key, in.context.timeout, listener.service.empty() ? 0 : depth_of(in.context, listener.service), !listener.trusted};
}

}  // namespace temper::pathfence::thrift
