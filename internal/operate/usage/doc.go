// Package usage keeps what workers use: attempts, CPU time, time and bytes, by the hour for 35 days and by the day for
// 400. Each process writes its own part of an hour every ten seconds, so no two write one key. When an hour is over,
// any process adds its parts up. When a day is over, it adds up its hours.
package usage
