// Package nodecrypto has the algorithms of Node's module crypto that the Web Cryptography API does not have, and states
// of hashes and ciphers that JavaScript keeps between calls. isolates/js/node has the module, and subtle calls this
// package.
//
// All functions are pure: what lasts is a state of some hundred bytes, which a call takes and returns. So nothing here
// belongs to an event, and nothing has to be closed. A state is the caller's own: a wrong one gives wrong results or an
// error.
package nodecrypto
