namespace cpp example

service Shop {
  string item(1: i64 id)
  string order(1: i64 id)
}
