type Nothing = {};

const nothing: Nothing = {};

export default nothing;
