export { createController, type ControllerOptions } from "./controller";
