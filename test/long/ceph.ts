/** Ceph's S3 gateway, from Debian's packages, in its own folder and namespaces. Needs root. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { AwsClient } from 'aws4fetch';
import { freePorts } from '../harness/free-port.ts';
import { makeTree } from './debian-tree.ts';

const PACKAGES = 'ceph-mon,ceph-osd,radosgw,ceph-common,procps';
const KEY = 'of-the-tests';
const SECRET = 'secret-of-the-tests';

export class Ceph {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #port: number;

  private constructor(child: ChildProcess, { folder, port }: { folder: string; port: number }) {
    this.#child = child;
    this.#folder = folder;
    this.#port = port;
  }

  /** Creates the tree in `folder`, which takes minutes, and starts a monitor, a disk of 32 GiB, a gateway. */
  static async start(folder: string): Promise<Ceph> {
    const tree = join(folder, 'tree');
    makeTree(tree, { suite: 'bookworm', packages: PACKAGES });
    const [port, ...monitor] = await freePorts(3);
    fs.writeFileSync(join(tree, 'up.sh'), upScript(port ?? 0, monitor));
    const child = spawn(
      'unshare',
      ['--mount', '--pid', '--fork', '--kill-child', 'bash', '-c', ENTER, 'enter', tree],
      { stdio: ['ignore', 'pipe', fs.openSync(join(folder, 'ceph.log'), 'w')] },
    );
    const ceph = new Ceph(child, { folder, port: port ?? 0 });
    await ceph.#isUp();
    return ceph;
  }

  /** The URL for CLOUDLET_BLOBS_URL, of a new bucket. */
  async bucket(name: string): Promise<string> {
    const client = new AwsClient({
      accessKeyId: KEY,
      secretAccessKey: SECRET,
      service: 's3',
      region: 'us-east-1',
    });
    const { status } = await client.fetch(`http://127.0.0.1:${this.#port}/${name}`, { method: 'PUT' });
    if (status !== 200) throw new Error(`the bucket was answered with ${status}`);
    return `s3://${KEY}:${SECRET}@127.0.0.1:${this.#port}/${name}/cloud?tls=off`;
  }

  /** Ends all of its processes; the mounts disappear with them. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  async #isUp(): Promise<void> {
    const { stdout } = this.#child;
    if (stdout === null) throw new Error('Ceph has no output');
    for await (const line of createInterface({ input: stdout })) if (line === 'UP') return;
    const log = fs.readFileSync(join(this.#folder, 'ceph.log'), 'utf8');
    throw new Error(`Ceph did not start: ${log.slice(-2000)}`);
  }
}

const ENTER = `set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --make-rslave "$1/dev"
mount -t tmpfs tmpfs "$1/run"
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c '
  bash /up.sh >&2 && echo UP && exec sleep infinity'`;

/** One monitor, one disk, no copies: cephx keys are needed, a manager is not. */
function upScript(port: number, [v2 = 0, v1 = 0]: readonly number[]): string {
  const monitor = `[v2:127.0.0.1:${v2}/0,v1:127.0.0.1:${v1}/0]`;
  return `set -e
mkdir -p /c/mon /c/osd /c/rgw /c/run
FSID=$(cat /proc/sys/kernel/random/uuid)
DISK=$(cat /proc/sys/kernel/random/uuid)
cat > /c/ceph.conf <<C
[global]
fsid = $FSID
mon host = ${monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = /c/keyring
run dir = /c/run
admin socket = /c/run/\\$name.asok
pid file = /c/run/\\$name.pid
log file = /c/\\$name.log
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
mon data avail warn = 2
ms bind ipv6 = false
[mon.a]
mon data = /c/mon
[osd.0]
osd data = /c/osd
osd objectstore = bluestore
osd memory target = 939524096
bluestore block size = 34359738368
bluestore cache autotune = false
bluestore cache size = 134217728
[client.rgw]
rgw data = /c/rgw
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw thread pool size = 32
rgw run sync thread = false
C
K=/c/keyring
ceph-authtool --create-keyring $K --gen-key -n mon. --cap mon 'allow *'
ceph-authtool $K --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *'
ceph-authtool $K --gen-key -n osd.0 --cap mon 'allow *' --cap osd 'allow *'
ceph-authtool $K --gen-key -n client.rgw --cap mon 'allow *' --cap osd 'allow *'
monmaptool --create --clobber --fsid $FSID --addv a '${monitor}' /c/monmap
export CEPH_ARGS="-c /c/ceph.conf"
ceph-mon --mkfs -i a --monmap /c/monmap --keyring $K
ceph-mon -i a
timeout 60 ceph osd new $DISK
ceph-osd -i 0 --mkfs --osd-uuid $DISK
ceph-osd -i 0
for i in $(seq 60); do timeout 10 ceph osd stat | grep -q '1 up' && break; sleep 0.5; done
radosgw -n client.rgw
for i in $(seq 120); do (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && break; sleep 0.5; done
timeout 60 radosgw-admin user create --uid=cloudlet --display-name=cloudlet \\
  --access-key=${KEY} --secret-key=${SECRET}
`;
}
