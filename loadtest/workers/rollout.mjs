// A part of its runs fails: env.FAILURES percent.
export default {
  task(event, env) {
    if (Math.random() * 100 < Number(env.FAILURES)) throw new Error("a run of a bad version");
    return event.payload;
  },
};
