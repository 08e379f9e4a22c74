export { firstDart, poisson } from "./darts";
export { createOps, EMPTY, TypedOps, type OpsOptions } from "./ops";
export { Philox, philox, uniform, type Key, type WordStream } from "./philox";
export { checkSampling, DEFAULT_SAMPLING } from "./sampling";
