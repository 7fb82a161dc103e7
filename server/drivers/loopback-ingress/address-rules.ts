/** The rules of one block of addresses, as text for nftables. */
import { BlockList } from 'node:net';

export interface AddressRules {
  /** First address of the block. */
  readonly base: string;
  readonly prefix: number;
  /** Where machines listen, by the port that clients know. */
  readonly doors: ReadonlyMap<number, number>;
}

/**
 * A table that stands in the place of the one of that name, in one step. A new connection of this host to a
 * port that machines have is led to where they listen for it, at the same address; others are refused.
 */
export function addressRules({ base, prefix, doors }: AddressRules): string {
  const block = `ip daddr ${base}/${prefix}`;
  const map = [...doors].map(([port, door]) => `${port} : ${door}`).join(', ');
  const isNew = 'tcp flags & (fin | syn | rst | ack) == syn';
  return [
    ...[`table ${tableOf(base)}`, `delete table ${tableOf(base)}`, `table ${tableOf(base)} {`],
    '  chain redirection {',
    '    type nat hook output priority -100; policy accept;',
    ...(doors.size === 0 ? [] : [`    ${block} ip protocol tcp dnat to :tcp dport map { ${map} }`]),
    '  }',
    '  chain others {',
    '    type filter hook output priority 10; policy accept;',
    `    ${block} ${isNew} ct status & dnat == 0 reject with tcp reset`,
    '  }',
    '}',
    '',
  ].join('\n');
}

/** Takes the table of a block away; missing is no error. */
export function removalOf(base: string): string {
  return `table ${tableOf(base)}\ndelete table ${tableOf(base)}\n`;
}

/** Asks which tables there are. */
export const LIST = 'list tables ip\n';

/** First addresses of the blocks of that network which have tables, by the answer to LIST. */
export function basesIn(listed: string, network: string): string[] {
  const [first = '', prefix = ''] = network.split('/');
  const blocks = [...listed.matchAll(/^table ip cloudlet_(\d+)_(\d+)_(\d+)_(\d+)$/gm)];
  const inside = new BlockList();
  inside.addSubnet(first, Number(prefix));
  return blocks.map((block) => block.slice(1).join('.')).filter((base) => inside.check(base));
}

/** The table of a block, with its family. */
export function tableOf(base: string): string {
  return `ip cloudlet_${base.replaceAll('.', '_')}`;
}
