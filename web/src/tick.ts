/**
 * Let messages and timers in. A run of a graph on one thread settles without ever leaving the microtasks, so that a loop of
 * runs would hear of an abort only at its end; a timer of 0 would cost milliseconds.
 */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
