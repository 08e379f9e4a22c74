export { createController, PythonController, type ControllerOptions } from "./controller";
