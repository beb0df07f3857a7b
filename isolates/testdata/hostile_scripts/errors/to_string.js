// a thrown object whose conversions never return
// outcome: exception

export default { fetch() { throw { toString() { for (;;); }, valueOf() { for (;;); }, toJSON() { for (;;); }, [Symbol.toPrimitive]() { for (;;); } }; } };
