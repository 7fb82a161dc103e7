/** Programs that people use with S3, as in Debian 13, unchanged and with their defaults. Needs root. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { newKeyPair } from '../acceptance/s3-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotMakeTree, makeTree } from './debian-tree.ts';

const PACKAGES = 'awscli,restic,rclone,s3cmd,s3fs,fuse3,python3-boto3,ca-certificates';
/** `CLIENTS_TREE` names an existing tree, which is kept. */
const KEPT_TREE = process.env.CLIENTS_TREE;
const CLIENT_MS = 300_000;
/** Enters the tree of $0 with the rest of the host's network and devices, and runs $1 there. */
const ENTER = `set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" bash -euc "$1"`;
/** A folder with files of many sizes and names, and a file that is uploaded in parts. */
const FOLDER = `rm -rf /w/*; mkdir -p /w/in/sub/deep; cd /w
head -c 20000000 /dev/urandom > in/large
for i in $(seq 30); do head -c $((i * 997)) /dev/urandom > in/sub/file-$i; done
echo umlaut > 'in/sub/deep/ä b+c&d.txt'; : > in/empty`;

describe('on the S3 endpoint', { skip: cannotMakeTree() }, () => {
  let cloud: CloudProcess;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    folder = KEPT_TREE ?? mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
    if (KEPT_TREE === undefined) makeTree(folder, { suite: 'trixie', packages: PACKAGES });
    cloud = await CloudProcess.start();
    const pair = await newKeyPair(await new Client(cloud.api).newUser());
    env = {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/w',
      LANG: 'C.UTF-8',
      S3: cloud.data,
      HOST: new URL(cloud.data).host,
      AWS_ACCESS_KEY_ID: pair.access_key_id,
      AWS_SECRET_ACCESS_KEY: pair.secret_access_key,
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_ENDPOINT_URL: cloud.data,
    };
    await run(FOLDER);
  });
  after(async () => {
    await cloud?.stop();
    if (KEPT_TREE === undefined) rmSync(folder, { recursive: true, force: true });
  });

  /** What a script of bash prints in the tree. Rejects when one of its commands fails. */
  async function run(script: string): Promise<string> {
    const words = ['--mount', '--pid', '--fork', '--kill-child', 'bash', '-c', ENTER, folder, script];
    const child = spawn('unshare', words, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: CLIENT_MS });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    assert.equal(code, 0, `${out}\n${err}`);
    return out;
  }

  test('awscli copies, synchronizes and removes, with its checksums in trailers', async () => {
    const out = await run(`cd /w
aws s3 mb s3://aws
aws s3 cp --no-progress in/large s3://aws/large
aws s3 cp --no-progress s3://aws/large - | cmp - in/large
aws s3 sync --no-progress in s3://aws/in
aws s3 sync --no-progress s3://aws/in out && diff -r in out
rm out/sub/file-7 && aws s3 sync --no-progress --delete out s3://aws/in
aws s3api head-object --bucket aws --key large --checksum-mode ENABLED
aws s3 ls s3://aws/in/sub/ | wc -l
aws s3 rb --force s3://aws`);
    assert.match(out, /"ChecksumCRC64NVME"/);
    assert.match(out, /delete: s3:\/\/aws\/in\/sub\/file-7/);
    assert.match(out, /^30$/m);
  });

  test('rclone copies and finds no difference', async () => {
    const out = await run(`cd /w
export RCLONE_CONFIG_C_TYPE=s3 RCLONE_CONFIG_C_PROVIDER=Other RCLONE_CONFIG_C_ENDPOINT=$S3 RCLONE_CONFIG_C_ENV_AUTH=true
rclone mkdir c:rclone
rclone copy --s3-upload-cutoff 8M --s3-chunk-size 5M in c:rclone/in
rclone check --download in c:rclone/in 2>&1
rclone check in c:rclone/in 2>&1
rclone moveto c:rclone/in/sub c:rclone/moved && rclone lsf -R c:rclone | sort | head -3
rclone purge c:rclone`);
    assert.equal(out.match(/0 differences found/g)?.length, 2, out);
  });

  test('restic backs up, checks every byte, prunes and restores', async () => {
    await run(`cd /w
export RESTIC_REPOSITORY=s3:$S3/restic RESTIC_PASSWORD=secret
restic -q init
restic -q backup in
echo changed >> in/sub/file-1 && restic -q backup in
restic -q check --read-data
restic -q forget --keep-last 1 --prune
restic -q check --read-data
restic -q restore latest --target back && diff -r in back/w/in 2>/dev/null || diff -r in back/in`);
  });

  test('s3cmd synchronizes both ways', async () => {
    await run(`cd /w
s3() { s3cmd --no-progress -q --access_key=$AWS_ACCESS_KEY_ID --secret_key=$AWS_SECRET_ACCESS_KEY --host=$HOST --host-bucket=$HOST --no-ssl --region=us-east-1 "$@"; }
s3 mb s3://s3cmd
s3 sync --multipart-chunk-size-mb=5 in/ s3://s3cmd/in/
mkdir -p s3cmd && s3 sync s3://s3cmd/in/ s3cmd/ && diff -r in s3cmd
rm s3cmd/large && s3 sync --delete-removed s3cmd/ s3://s3cmd/in/
test -z "$(s3 ls s3://s3cmd/in/large)"
s3 setacl --acl-private s3://s3cmd/in/sub/file-1
s3 rb --recursive --force s3://s3cmd`);
  });

  test('s3fs holds a folder in which files are edited in place', async () => {
    await run(`cd /w
echo $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY > $HOME/.passwd-s3fs && chmod 600 $HOME/.passwd-s3fs
aws s3 mb s3://s3fs
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL
mkdir -p mounted
mount_it() { s3fs s3fs mounted -o url=$S3,use_path_request_style,multipart_size=10,compat_dir; for i in $(seq 50); do mountpoint -q mounted && return; sleep 0.1; done; return 1; }
mount_it
cp -r in mounted/in && diff -r in mounted/in
cp in/large edited
for f in edited mounted/in/large; do printf marked | dd of=$f bs=1 seek=7000000 conv=notrunc status=none; echo more >> $f; done
cmp edited mounted/in/large
mv mounted/in/sub mounted/renamed && rm mounted/renamed/file-3
umount mounted && mount_it
cmp edited mounted/in/large && ls mounted/renamed | wc -l
umount mounted`);
  });

  test('boto3 uploads in parts, reads pieces, signs links and walks pages', async () => {
    mkdirSync(join(folder, 'w'), { recursive: true });
    writeFileSync(join(folder, 'w/boto.py'), BOTO);
    const out = await run('cd /w && python3 boto.py');
    assert.match(out, /^fine$/m);
  });
});

const BOTO = `
import io, os, urllib.request, boto3
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
s3 = boto3.client('s3')
s3.create_bucket(Bucket='boto')
data = open('in/large', 'rb').read()
s3.upload_fileobj(io.BytesIO(data), 'boto', 'large', Config=TransferConfig(multipart_threshold=2**23, multipart_chunksize=5 * 2**20))
got = io.BytesIO()
s3.download_fileobj('boto', 'large', got)
assert got.getvalue() == data
assert s3.get_object(Bucket='boto', Key='large', Range='bytes=10-19')['Body'].read() == data[10:20]
s3.put_object(Bucket='boto', Key='unseekable', Body=open('/proc/self/status', 'rb').read())
for i in range(5): s3.put_object(Bucket='boto', Key=f'page/{i}', Body=b'')
pages = s3.get_paginator('list_objects_v2').paginate(Bucket='boto', Prefix='page/', PaginationConfig={'PageSize': 2})
assert [o['Key'] for p in pages for o in p['Contents']] == [f'page/{i}' for i in range(5)]
link = s3.generate_presigned_url('get_object', Params={'Bucket': 'boto', 'Key': 'large'}, ExpiresIn=60)
assert urllib.request.urlopen(link).read() == data
try:
    s3.put_object(Bucket='boto', Key='page/0', Body=b'x', IfNoneMatch='*')
    raise AssertionError('was overwritten')
except ClientError as e:
    assert e.response['Error']['Code'] == 'PreconditionFailed', e.response
copied = s3.copy({'Bucket': 'boto', 'Key': 'large'}, 'boto', 'copy', Config=TransferConfig(multipart_threshold=2**23, multipart_chunksize=5 * 2**20))
assert s3.get_object(Bucket='boto', Key='copy')['Body'].read() == data
bucket = boto3.resource('s3').Bucket('boto')
bucket.objects.all().delete()
bucket.delete()
print('fine')
`;
