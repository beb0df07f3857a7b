// null and undefined thrown, also while the module handles a rejection
// outcome: exception

export default { async fetch() { Promise.reject(null); Promise.reject(undefined); throw undefined; } };
