/** The question for the password, which the frame shows over the page: see shell/ask-password.tsx. */
import { createStore } from '../store.ts';

/** Called when the question is over: whether the cloud has taken a password. */
type Answer = (isGiven: boolean) => void;

/** null: nothing is asked. */
export const passwordQuestion = createStore<Answer | null>(null);

let asked: Promise<boolean> | undefined;

/** Asks once for all who ask at the same time. */
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
