/** The question for the password, which the frame shows over the page: see shell/ask-password.tsx. */
import { createStore } from '../store.ts';

/** Called when the dialog closes: whether the password was accepted. */
type Answer = (isGiven: boolean) => void;

/** null: the dialog is closed. */
export const passwordQuestion = createStore<Answer | null>(null);

let asked: Promise<boolean> | undefined;

/** Shows one dialog for concurrent callers. */
export function givePassword(): Promise<boolean> {
  asked ??= new Promise((resolve) => {
    passwordQuestion.set((isGiven) => {
      asked = undefined;
      passwordQuestion.set(null);
      resolve(isGiven);
    });
  });
  return asked;
}
