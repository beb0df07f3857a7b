// a class whose constructor makes another
// outcome: exception

export default { fetch() { class A { a = new A(); } return new A(); } };
