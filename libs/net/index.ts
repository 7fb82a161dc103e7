/** The private network of an account, and batched writes. See README.md. */
export { AccountNetwork, PERIOD_MS } from './account-network.ts';
export { GatheredWrites } from './gathered-writes.ts';
export { KeysAnswer } from './keys-answer.ts';
export { datagramFrame, FLAG, segmentFrame } from './packets.ts';
export { ipNumber, type Member, SwitchPort } from './switch-port.ts';
