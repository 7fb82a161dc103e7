/** Signing in with a short code that is typed in a browser on any computer (RFC 8628). */
import { setTimeout as sleep } from 'node:timers/promises';
import { CloudError, type DeviceCodes, type LoginKey } from '../../sdk/index.ts';
import { ClientError, EXIT } from '../failures.ts';
import type { AskedLogin } from './browser-login.ts';

/** RFC 8628 §3.5: `slow_down` adds this to the interval. */
const SLOWER_SECONDS = 5;
/** Bounds of the cloud's polling interval, against floods and endless waits. */
const MIN_POLL_SECONDS = 1;
const MAX_POLL_SECONDS = 60;
const MAX_WAIT_SECONDS = 30 * 60;

/** The key granted for the code. Throws ClientError if refused or undecided. */
export async function loginByCode({ url, cloud, name, scopes, output }: AskedLogin): Promise<LoginKey> {
  const codes = await cloud.startDeviceLogin({ name, scopes });
  // The URL from the user, because the cloud may use another name for itself.
  output.ask(`To sign in, open ${url}/device in a browser and type the code`, `  ${codes.user_code}`);
  output.note('Waiting for the browser.');
  return poll(cloud, codes);
}

async function poll(cloud: AskedLogin['cloud'], codes: DeviceCodes): Promise<LoginKey> {
  const now = () => performance.now();
  const endsAt = now() + within(codes.expires_in, 0, MAX_WAIT_SECONDS) * 1000;
  for (let seconds = codes.interval; now() < endsAt; ) {
    seconds = within(seconds, MIN_POLL_SECONDS, MAX_POLL_SECONDS);
    await sleep(seconds * 1000);
    try {
      return await cloud.pollDeviceLogin({ device_code: codes.device_code });
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      if (error.code === 'slow_down') seconds += SLOWER_SECONDS;
      else if (!canWait(error)) throw refusalOf(error);
    }
  }
  throw new ClientError('the sign-in was not approved in time', EXIT.timeout);
}

function within(value: unknown, least: number, most: number): number {
  return typeof value === 'number' && value >= least ? Math.min(value, most) : least;
}

/** True while approval is still possible; a short outage of the cloud does not end the login. */
function canWait({ code, status }: CloudError): boolean {
  return code === 'authorization_pending' || code === 'no_answer' || status === 429 || status === 503;
}

function refusalOf(error: CloudError): Error {
  return error.code === 'access_denied' ? new ClientError('the sign-in was refused', EXIT.forbidden) : error;
}
