/** `login`, `logout`, `whoami` and the profiles. */
import { CloudError, type CreatedAccessKey, createCloud } from '../sdk/index.ts';
import type { Command, Invocation, Values } from './command.ts';
import { hostName, variable } from './environment.ts';
import { UsageError } from './failures.ts';
import { type Profile, Profiles } from './profiles.ts';
import { askSecret, readSecret } from './prompt.ts';
import { cloudUrl, isOpenToReaders, reachable, Session } from './session.ts';

const DAY_SECONDS = 24 * 3600;
const KEY_DAYS = 90;

export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'login',
    words: '[URL]',
    summary: 'sign in to a cloud with an API key',
    details: [
      'Asks for an API key without showing it, and makes a key of its own with it, named cli@COMPUTER, which',
      'the console lists and can revoke. The key that was typed is not kept. A key is never an argument: give',
      'it by --key -, --key-file or CLOUDLET_API_KEY. Signing in through a browser is not supported.',
    ].join('\n'),
    options: {
      key: { value: '-', summary: 'read the key from standard input' },
      'key-file': { value: 'FILE', summary: 'read the key from a file' },
      name: { value: 'NAME', summary: 'name of the profile; default: the host of the cloud' },
      days: { value: 'N', summary: `days until the key expires; default: ${KEY_DAYS}` },
    },
    run: login,
  },
  {
    name: 'logout',
    words: '[PROFILE]',
    summary: 'revoke the key that login made, and forget the profile',
    run: logout,
  },
  {
    name: 'whoami',
    words: '',
    summary: 'show the account, its credits and the cloud',
    run: async ({ session, output }) => {
      const { cloud, url, profileName } = session();
      const account = await cloud.getAccount();
      const { username, email, plan, credits, is_admin } = account;
      output.one({ ...account, url, profile: profileName }, () => [
        `${username} <${email}>${is_admin ? ', administrator' : ''}`,
        `plan ${plan}, ${credits} credits`,
        `${url}${profileName === null ? '' : ` (profile ${profileName})`}`,
      ]);
    },
  },
  {
    name: 'profile ls',
    words: '',
    summary: 'list the profiles; * is the current one',
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
    summary: 'forget a profile; its key stays valid (logout revokes it)',
    run: async ({ words: [name = ''] }) => {
      const profiles = Profiles.read();
      profiles.get(name);
      profiles.remove(name);
    },
  },
];

async function login({ words: [address], options, output }: Invocation): Promise<void> {
  const given = address ?? variable('CLOUDLET_URL');
  if (given === undefined) throw new UsageError('which cloud?', 'Usage: cloudlet login URL');
  const url = cloudUrl(given);
  const days = options.count('days', KEY_DAYS);
  if (isOpenToReaders(url)) output.warn(`${url} is not encrypted: whoever is on the way can read the key`);
  const key = await keyFor(url, options);
  const cloud = createCloud({ baseUrl: url, apiKey: key });
  const { username } = await cloud.getAccount();
  const made = await makeKey(cloud, days);
  const name = options.text('name') ?? new URL(url).host;
  const profiles = Profiles.read();
  const former = profiles.find(name);
  profiles.put(name, made === null ? withOwnKey(url, username, key) : profileOf(url, username, made));
  if (former !== undefined) await revoke(former).catch(() => output.note('the former key was not revoked'));
  if (made === null) {
    output.note('this key may not create keys, so it is kept itself; each file command needs a key pair');
  }
  output.one({ profile: name, url, username, key_id: made?.id ?? null }, () => [
    `Signed in to ${url} as ${username}${made === null ? '' : `, with the key ${made.name} for ${days} days`}.`,
  ]);
}

async function keyFor(url: string, options: Values): Promise<string> {
  const [key, file] = [options.text('key'), options.text('key-file')];
  if (key !== undefined && key !== '-') {
    const why = 'a key in the command line is seen by other users, and kept in the history';
    throw new UsageError(why, 'Use --key - and pass it on standard input, or --key-file');
  }
  if (key !== undefined && file !== undefined)
    throw new UsageError('--key and --key-file exclude each other');
  if (key !== undefined) return readSecret('-');
  if (file !== undefined) return readSecret(file);
  return variable('CLOUDLET_API_KEY') ?? askSecret(`API key for ${url}: `);
}

/** A key of the client's own; null if the given one may not make any. */
async function makeKey(
  cloud: ReturnType<typeof createCloud>,
  days: number,
): Promise<CreatedAccessKey | null> {
  try {
    return await cloud.createAccessKey({
      name: `cli@${hostName()}`,
      scopes: ['*'],
      expires_in: days * DAY_SECONDS,
    });
  } catch (error) {
    if (error instanceof CloudError && error.status === 403) return null;
    throw error;
  }
}

function profileOf(url: string, username: string, made: CreatedAccessKey): Profile {
  const { id, api_key: key, access_key_id, secret_access_key, s3_endpoint } = made;
  const endpoint = reachable(s3_endpoint, url);
  return { url, username, key, key_id: id, s3: { endpoint, access_key_id, secret_access_key } };
}

function withOwnKey(url: string, username: string, key: string): Profile {
  return { url, username, key, key_id: null, s3: null };
}

async function logout({ words: [word], options, output }: Invocation): Promise<void> {
  const profiles = Profiles.read();
  const name = word ?? options.text('profile') ?? variable('CLOUDLET_PROFILE') ?? profiles.current;
  if (name === null || name === undefined) throw new UsageError('not signed in; which profile?');
  const profile = profiles.get(name);
  const isRevoked = await revoke(profile);
  profiles.remove(name);
  output.note(
    isRevoked
      ? `Signed out of ${profile.url}; the key is revoked.`
      : `Signed out of ${profile.url}; the key was your own and stays valid.`,
  );
}

/**
 * False: the key was not made by `login`. A key that is gone is as good as revoked. Throws CloudError when
 * the cloud cannot be asked; the profile then stays, so that one can try again.
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
