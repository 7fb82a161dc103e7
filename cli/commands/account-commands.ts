/** `login`, `logout`, `whoami` and the profiles. */
import { CloudError, type CreatedAccessKey, createCloud } from '../../sdk/index.ts';
import type { Command, Invocation, Values } from '../command.ts';
import { hostName, isTerminal, variable } from '../environment.ts';
import { UsageError } from '../failures.ts';
import { askSecret, readSecret } from '../prompt.ts';
import { goThroughProxies } from '../proxies.ts';
import { loginByBrowser } from '../sign-in/browser-login.ts';
import { loginByCode } from '../sign-in/device-login.ts';
import { type Profile, Profiles } from '../sign-in/profiles.ts';
import { cloudUrl, isOpenToReaders, reachable, Session } from '../sign-in/session.ts';

const DAY_SECONDS = 24 * 3600;
const KEY_DAYS = 90;
/** The name in the console's list of keys. */
const KEY_NAME = `CLI on ${hostName()}`.slice(0, 64);

export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'login',
    words: '[URL]',
    summary: 'sign in to a cloud with a browser, a code, or an API key',
    details: [
      'Opens the console in a browser, where you approve the sign-in. --device prints a code to enter on',
      'another computer. Each way creates a key named "CLI on COMPUTER", which you can revoke in the console.',
      '--key -, --key-file and CLOUDLET_API_KEY sign in with an API key; it is never passed as an argument.',
    ].join('\n'),
    options: {
      device: { summary: 'print a code to enter in a browser on any computer' },
      scopes: {
        value: 'SCOPES',
        summary: 'scopes of the key, such as storage:read,storage:write; default: all',
      },
      key: { value: '-', summary: 'read an API key from standard input (prompts on a terminal)' },
      'key-file': { value: 'FILE', summary: 'read an API key from a file' },
      name: { value: 'NAME', summary: 'name of the profile; default: the host of the cloud' },
      days: { value: 'N', summary: `days until the key expires; default: ${KEY_DAYS}` },
    },
    run: login,
  },
  {
    name: 'logout',
    words: '[PROFILE]',
    summary: 'revoke the key that login created, and remove the profile',
    run: logout,
  },
  {
    name: 'whoami',
    words: '',
    summary: 'show the account, its credits and the cloud',
    run: async ({ session, output }) => {
      const { cloud, url, profileName } = session();
      const account = await cloud.getAccount();
      const { username, email, plan, credits, is_admin, is_auditor } = account;
      const role = is_admin ? ', administrator' : is_auditor ? ', auditor' : '';
      output.one({ ...account, url, profile: profileName }, () => [
        `${username} <${email}>${role}`,
        `plan ${plan}, ${credits} credits`,
        `${url}${profileName === null ? '' : ` (profile ${profileName})`}`,
      ]);
    },
  },
  {
    name: 'profile ls',
    words: '',
    summary: 'list the profiles; * marks the current one',
    run: async ({ output }) => {
      const profiles = Profiles.read();
      const rows = profiles.names.map((name) => {
        const { url, username } = profiles.get(name);
        return { name, url, username, current: name === profiles.current };
      });
      output.table(rows, ['', 'PROFILE', 'USER', 'CLOUD'], ({ name, url, username, current }) => {
        return [current ? '*' : '', name, username, url];
      });
    },
  },
  {
    name: 'profile use',
    words: 'PROFILE',
    summary: 'make a profile the current one',
    run: async ({ words: [name = ''] }) => Profiles.read().use(name),
  },
  {
    name: 'profile rm',
    words: 'PROFILE',
    summary: 'remove a profile; its key stays valid (logout revokes it)',
    run: async ({ words: [name = ''] }) => {
      const profiles = Profiles.read();
      profiles.get(name);
      profiles.remove(name);
    },
  },
];

/** A key and its account. */
interface Made {
  readonly username: string;
  /** Null: the given key may not create keys, so it is stored itself. */
  readonly made: CreatedAccessKey | null;
  readonly given: string;
}

async function login(call: Invocation): Promise<void> {
  const { words, options, output } = call;
  const given = words[0] ?? variable('CLOUDLET_URL');
  if (given === undefined)
    throw new UsageError('the URL of the cloud is missing', 'Usage: cloudlet login URL');
  const url = cloudUrl(given);
  if (isOpenToReaders(url)) output.warn(`${url} is not encrypted (http): the network can read the key`);
  const name = options.text('name') ?? new URL(url).host;
  // An unusable profile file is reported before the browser opens.
  const profiles = Profiles.read();
  profiles.assertWritable();
  const { username, made, given: key } = await signIn(url, call);
  const former = profiles.find(name);
  const profile = made === null ? withOwnKey(url, username, key) : await profileOf(url, username, made);
  try {
    profiles.put(name, profile);
  } catch (error) {
    await revoke(profile).catch(() => {});
    throw error;
  }
  if (former !== undefined)
    await revoke(former).catch(() => output.note('the previous key could not be revoked'));
  if (made === null) {
    output.note(
      'this key may not create keys, so the profile stores the key itself; file commands create a temporary key pair',
    );
  }
  const until = made?.expires_at == null ? '' : ` until ${made.expires_at} UTC`;
  output.one({ profile: name, url, username, key_id: made?.id ?? null }, () => [
    `Signed in to ${url} as ${username}${made === null ? '' : `, with the key "${made.name}"${until}`}.`,
  ]);
}

async function signIn(url: string, { options, output }: Invocation): Promise<Made> {
  const days = options.count('days', KEY_DAYS);
  const scopes = scopesOf(options.text('scopes') ?? '*');
  const key = keyFor(url, options);
  goThroughProxies(url);
  if (key === undefined) {
    const cloud = createCloud({ baseUrl: url });
    // With a mistyped URL the browser would show nothing while this program waits.
    await cloud.getIndex();
    const asked = { url, cloud, name: KEY_NAME, scopes, days, output };
    const made = await (options.has('device') ? loginByCode(asked) : loginByBrowser(asked));
    return { username: made.username, made, given: '' };
  }
  const given = await key;
  const cloud = createCloud({ baseUrl: url, apiKey: given });
  const { username } = await cloud.getAccount();
  return { username, made: await makeKey(cloud, { days, scopes }), given };
}

/** The given API key; undefined: sign in with a browser. */
function keyFor(url: string, options: Values): string | Promise<string> | undefined {
  const ways = ['device', 'key', 'key-file'].filter((name) => options.has(name));
  if (ways.length > 1) throw new UsageError(`--${ways.join(' and --')} cannot be used together`);
  const [key, file] = [options.text('key'), options.text('key-file')];
  if (key !== undefined && key !== '-') {
    const why = 'a key on the command line is visible to other users and stays in the shell history';
    throw new UsageError(why, 'Use --key - and pass it on standard input, or --key-file');
  }
  if (key !== undefined) {
    return isTerminal(process.stdin) ? askSecret(`API key for ${url}: `) : readSecret('-');
  }
  if (file !== undefined) return readSecret(file);
  return options.has('device') ? undefined : variable('CLOUDLET_API_KEY');
}

/** The cloud validates the scopes. */
function scopesOf(text: string): CreatedAccessKey['scopes'] {
  return text.split(/[\s,]+/).filter((scope) => scope !== '') as CreatedAccessKey['scopes'];
}

/** Creates a key for the client; null if the given key may not create keys. */
async function makeKey(
  cloud: ReturnType<typeof createCloud>,
  { days, scopes }: { readonly days: number; readonly scopes: CreatedAccessKey['scopes'] },
): Promise<CreatedAccessKey | null> {
  try {
    return await cloud.createAccessKey({ name: KEY_NAME, scopes, expires_in: days * DAY_SECONDS });
  } catch (error) {
    if (error instanceof CloudError && error.status === 403) return null;
    throw error;
  }
}

async function profileOf(url: string, username: string, made: CreatedAccessKey): Promise<Profile> {
  const { id, api_key: key, access_key_id, secret_access_key, s3_endpoint } = made;
  const endpoint = await reachable(s3_endpoint, url);
  return { url, username, key, key_id: id, s3: { endpoint, access_key_id, secret_access_key } };
}

function withOwnKey(url: string, username: string, key: string): Profile {
  return { url, username, key, key_id: null, s3: null };
}

async function logout({ words: [word], options, output }: Invocation): Promise<void> {
  const profiles = Profiles.read();
  const name = word ?? options.text('profile') ?? variable('CLOUDLET_PROFILE') ?? profiles.current;
  if (name === null || name === undefined)
    throw new UsageError('not signed in; choose a profile with --profile');
  const profile = profiles.get(name);
  const isRevoked = await revoke(profile);
  profiles.remove(name);
  output.note(
    isRevoked
      ? `Signed out of ${profile.url}; the key is revoked.`
      : `Signed out of ${profile.url}; the key was not created by login and stays valid.`,
  );
}

/**
 * False: the key was not created by `login`. A key that is gone counts as revoked. Throws
 * CloudError if the cloud cannot be reached; the profile then stays, so that the user can retry.
 */
async function revoke(profile: Profile): Promise<boolean> {
  if (profile.key_id === null) return false;
  try {
    await Session.of('', profile).cloud.deleteAccessKey(profile.key_id);
  } catch (error) {
    if (!(error instanceof CloudError) || (error.status !== 401 && error.status !== 404)) throw error;
  }
  return true;
}
