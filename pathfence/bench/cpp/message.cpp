// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "temper/pathfence/thrift/client.h"

namespace bench {
namespace {

namespace at = apache::thrift;
namespace pf = temper::pathfence;
using at::protocol::TProtocol;

thread_local bool refusing = false;

void end_message(TProtocol& out) {
    out.writeMessageEnd();
    out.getTransport()->writeEnd();
    out.getTransport()->flush();
}

std::int64_t read_work(TProtocol& in) {
    std::int64_t work = 0;
    std::string name;
    at::protocol::TType type;
    std::int16_t id;
    in.readStructBegin(name);
    for (;;) {
        in.readFieldBegin(name, type, id);
        if (type == at::protocol::T_STOP) break;
        if (id == 1 && type == at::protocol::T_I64)
            in.readI64(work);
        else
            in.skip(type);
        in.readFieldEnd();
    }
    in.readStructEnd();
    return work;
}

void answer(TProtocol& out, const std::string& path, std::int32_t sequence) {
    out.writeMessageBegin(path, at::protocol::T_REPLY, sequence);
    out.writeStructBegin("result");
    out.writeFieldStop();
    out.writeStructEnd();
    end_message(out);
}

void answer_exception(TProtocol& out, const std::string& path, std::int32_t sequence, const at::TApplicationException& x) {
    out.writeMessageBegin(path, at::protocol::T_EXCEPTION, sequence);
    x.write(&out);
    end_message(out);
}

std::shared_ptr<TProtocol> connected(int port) {
    const auto framed = std::make_shared<at::transport::TFramedTransport>(std::make_shared<at::transport::TSocket>("127.0.0.1", port));
    framed->open();
    return std::make_shared<at::protocol::TBinaryProtocol>(framed);
}

}  // namespace

Refusing::Refusing() { refusing = true; }
Refusing::~Refusing() { refusing = false; }

bool Processor::process(std::shared_ptr<TProtocol> in, std::shared_ptr<TProtocol> out, void*) {
    std::string path;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    in->readMessageBegin(path, type, sequence);
    const std::int64_t work_us = read_work(*in);
    in->readMessageEnd();
    in->getTransport()->readEnd();
    try {
        if (refusing) throw at::TApplicationException(at::TApplicationException::INTERNAL_ERROR, "shed");
        handle_(path, work_us);
    } catch (const std::exception& x) {
        answer_exception(*out, path, sequence, at::TApplicationException(at::TApplicationException::INTERNAL_ERROR, x.what()));
        return true;
    }
    answer(*out, path, sequence);
    return true;
}

Connection::Connection(int port, bool onward)
    : edge_("port-" + std::to_string(port)), protocol_(onward ? std::make_shared<pf::thrift::FencedProtocol>(connected(port), edge_) : connected(port)), onward_(onward) {}

void Connection::call(const std::string& path, std::int64_t work_us) {
    const pf::Permit* permit = pf::Serving::here();
    if (permit && !onward_) permit->edge(edge_);
    TProtocol& p = *protocol_;
    p.writeMessageBegin(path, at::protocol::T_CALL, 0);
    p.writeStructBegin("args");
    p.writeFieldBegin("work_us", at::protocol::T_I64, 1);
    p.writeI64(work_us);
    p.writeFieldEnd();
    p.writeFieldStop();
    p.writeStructEnd();
    end_message(p);

    std::string name;
    at::protocol::TMessageType type;
    std::int32_t sequence;
    p.readMessageBegin(name, type, sequence);
    at::TApplicationException x;
    if (type == at::protocol::T_REPLY)
        p.skip(at::protocol::T_STRUCT);
    else
        x.read(&p);
    p.readMessageEnd();
    p.getTransport()->readEnd();
    if (type != at::protocol::T_REPLY) throw x;
}

}  // namespace bench
