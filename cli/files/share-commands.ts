/** Shared links: create, list, end. */
import type { Share } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { UsageError } from '../failures.ts';
import { askSecret, readSecret } from '../prompt.ts';
import { remoteOnly } from './locations.ts';
import { secondsOf } from './version-commands.ts';

const NEVER = 'never';

export const SHARE_COMMANDS: readonly Command[] = [
  {
    name: 'share',
    words: 'PATH',
    summary: 'print a link to a file or folder that anyone can open until it expires',
    details: 'A folder ends with "/". `shares` lists the links, `unshare` revokes one.',
    options: {
      expires: { value: 'TIME', summary: 'expiry: 30m, 12h, 7d or never; default: 7d' },
      password: { summary: 'ask for a password that visitors must enter' },
      'password-file': { value: 'FILE', summary: 'read the password from a file (-: standard input)' },
      'max-downloads': { value: 'COUNT', summary: 'expires after N downloads' },
    },
    run: async (call) => {
      const { options, output } = call;
      const { cloud } = call.session();
      const { bucket, key: name } = remoteOnly(call.words[0] ?? '');
      const expires = options.text('expires') ?? '7d';
      const most = options.text('max-downloads');
      if (most !== undefined && !/^[1-9]\d{0,5}$/.test(most))
        throw new UsageError(`--max-downloads ${most} is not a number from 1 to 999999`);
      const share = await cloud.createShare({
        bucket,
        name,
        ...(expires === NEVER ? {} : { expires_in: secondsOf(expires) }),
        ...(await passwordOf(call)),
        ...(most === undefined ? {} : { max_downloads: Number(most) }),
      });
      output.one(share, () => [share.url]);
    },
  },
  {
    name: 'shares',
    words: '',
    summary: 'list your shared links',
    run: async (call) => {
      const { cloud } = call.session();
      const headings = ['ID', 'PATH', 'STATE', 'ENDS', 'DOWNLOADS', 'LINK'];
      call.output.table(await cloud.listShares(), headings, (share) => {
        const { share_id, state, expires_at, downloads, max_downloads: most, url } = share;
        const count = most === null ? downloads : `${downloads} of ${most}`;
        return [share_id, shownPath(share), state, expires_at ?? NEVER, count, url];
      });
    },
  },
  {
    name: 'unshare',
    words: 'ID',
    summary: 'revoke a shared link, by its ID (see shares) or the link itself',
    run: async (call) => {
      const { cloud } = call.session();
      const [given = ''] = call.words;
      const ended = await cloud.endShare(/\/(shr-[0-9a-z]+)\//.exec(given)?.[1] ?? given);
      call.output.one(ended, () => [`ended: ${shownPath(ended)}`]);
    },
  },
];

async function passwordOf({ options }: Invocation): Promise<{ password?: string }> {
  const file = options.text('password-file');
  if (file !== undefined) return { password: readSecret(file, 'password') };
  return options.has('password') ? { password: await askSecret('Password of the link: ') } : {};
}

const shownPath = ({ bucket, name }: Share) => `s3://${bucket}/${name}`;
