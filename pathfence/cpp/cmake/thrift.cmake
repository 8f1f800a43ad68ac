# SPDX-License-Identifier: Apache-2.0
# Apache Thrift as the distribution ships it; it brings no CMake package.
find_path(THRIFT_INCLUDE thrift/Thrift.h REQUIRED)
find_library(THRIFT_LIBRARY thrift REQUIRED)
find_library(THRIFTNB_LIBRARY thriftnb REQUIRED)

add_library(pathfence-thrift src/thrift/peek.cpp src/thrift/server.cpp src/thrift/workers.cpp)
add_library(temper::pathfence-thrift ALIAS pathfence-thrift)
target_include_directories(pathfence-thrift SYSTEM PUBLIC $<BUILD_INTERFACE:${THRIFT_INCLUDE}>)
target_link_libraries(pathfence-thrift PUBLIC pathfence thriftnb thrift event)
set_target_properties(pathfence-thrift PROPERTIES OUTPUT_NAME temper-pathfence-thrift)
pathfence_flags(pathfence-thrift)
list(APPEND installed pathfence-thrift)
