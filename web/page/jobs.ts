/** One thing at a time: the sections share the model, so a job is running or none is. Escape stops it. */

export class Jobs {
  private running: AbortController | null = null;
  private readonly listeners: (() => void)[] = [];

  get busy(): boolean {
    return this.running !== null;
  }

  /** Run `work` unless something runs already. */
  async run(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.running) return;
    const controller = new AbortController();
    this.running = controller;
    this.tell();
    try {
      await work(controller.signal);
    } finally {
      this.running = null;
      this.tell();
    }
  }

  stop(): void {
    this.running?.abort();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/** A button that starts a job and, while that one runs, stops it. `startable` is asked whenever something changes. */
export class JobButton {
  private mine = false;
  private ready = false;
  private readonly label: string;

  constructor(
    private readonly button: HTMLButtonElement,
    private readonly jobs: Jobs,
    private readonly work: (signal: AbortSignal) => Promise<void>,
  ) {
    this.label = button.textContent ?? "";
    jobs.onChange(() => this.show());
  }

  enable(): void {
    this.ready = true;
    this.show();
  }

  async press(): Promise<void> {
    if (this.mine) this.jobs.stop();
    else if (this.ready && !this.jobs.busy) await this.start();
  }

  private async start(): Promise<void> {
    this.mine = true;
    try {
      await this.jobs.run(this.work);
    } finally {
      this.mine = false;
      this.show();
    }
  }

  private show(): void {
    this.button.textContent = this.mine ? "Stop" : this.label;
    this.button.classList.toggle("stop", this.mine);
    this.button.disabled = !this.ready || (this.jobs.busy && !this.mine);
  }
}
