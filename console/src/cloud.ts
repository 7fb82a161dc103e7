/**
 * The only client of the cloud's API: the session identifies the user, by its cookie and the token
 * that this page keeps.
 */
import { CloudError, createCloud, pageSession } from '../../sdk/index.ts';
import { givePassword } from './parts/forms/password-question.ts';

/** A call that needs the password waits until it is given, and is then repeated. */
function askingForPassword<Calls extends object>(calls: Calls): Calls {
  return new Proxy(calls, {
    get(target, name) {
      const call: unknown = Reflect.get(target, name);
      if (typeof call !== 'function') return call;
      return (...args: unknown[]) => {
        const answer: unknown = call(...args);
        if (!(answer instanceof Promise)) return answer;
        return answer.catch(async (error: unknown) => {
          const isAsked = error instanceof CloudError && error.code === 'password_required';
          if (!isAsked || !(await givePassword())) throw error;
          return call(...args);
        });
      };
    },
  });
}

export const sessionToken = pageSession();

export const cloud = askingForPassword(createCloud({ session: sessionToken }));
