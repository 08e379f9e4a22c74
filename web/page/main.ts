/** The page's start: which bundle, the load with its progress, then each section gets the model. */

import type { LanguageModel } from "journee-web";
import { announce } from "./announce";
import { bundleAddress, loadOptions } from "./bundle";
import { find } from "./dom";
import { ExactnessSection } from "./exactness";
import { clearFailure, showFailure } from "./failures";
import { GenerateSection } from "./generate";
import { showInfo } from "./info";
import { Jobs } from "./jobs";
import { Loading } from "./loading";
import { keepForOffline } from "./offline";
import { Form } from "./options";
import { SpeedSection } from "./speed";
import { startTheme } from "./theme";

const jobs = new Jobs();
const form = new Form();
const loading = new Loading();

async function loaded(): Promise<LanguageModel> {
  const address = await bundleAddress(location.href);
  const { load } = await import("journee-web");
  return load(address, { ...loadOptions(location.href), onProgress: (progress) => loading.show(progress) });
}

async function start(): Promise<void> {
  const failure = find("failure", HTMLElement);
  clearFailure(failure);
  loading.begin();
  try {
    begin(await loaded());
    void keepForOffline(); // after the load, so that it takes nothing from it
  } catch (error) {
    showFailure(failure, error, { label: "Try again", run: () => void start() });
  } finally {
    loading.end();
  }
}

function begin(model: LanguageModel): void {
  form.fit(model.info);
  showInfo(model.info);
  new GenerateSection(model, form, jobs);
  new SpeedSection(model, form, jobs);
  new ExactnessSection(model, form, jobs);
  announce("The model is ready.");
}

startTheme();
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") jobs.stop();
});
void start();
