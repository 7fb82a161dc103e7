/**
 * The network of one account: takes frames of its machines to each other and to its services. A machine
 * speaks for its own two addresses only, and everything that is neither ARP nor IPv4 is dropped.
 */
import { Gateway, type GatewayDeps } from './gateway.ts';
import { ARP, arpQuestionIn, ETHERNET_BYTES, IPV4, ipPacketIn, LENGTH_BYTES } from './packets.ts';
import type { Plug } from './plug.ts';

/** Frames that one account's machines may send in a period; more wait in their guests. */
const FRAMES = 400;
export const PERIOD_MS = 20;

export class AccountNetwork {
  readonly #members = new Map<number, Plug>();
  readonly #gateway: Gateway;
  #spent = 0;
  #isHeld = false;

  constructor(deps: Omit<GatewayDeps, 'members'>) {
    this.#gateway = new Gateway({ ...deps, members: () => [...this.#members.values()] });
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** False: a machine of the account has the address. */
  join(plug: Plug): boolean {
    if (this.#members.has(plug.ip)) return false;
    this.#members.set(plug.ip, plug);
    if (this.#isHeld) plug.hold();
    return true;
  }

  leave(plug: Plug): void {
    if (this.#members.get(plug.ip) === plug) this.#members.delete(plug.ip);
    this.#gateway.leave(plug);
  }

  /** Takes in a frame with its length before it. */
  enter(plug: Plug, framed: Buffer): void {
    this.#spent++;
    const frame = framed.subarray(LENGTH_BYTES);
    if (frame.length < ETHERNET_BYTES || plug.mac.compare(frame, 6, 12) !== 0) return;
    const type = frame.readUInt16BE(12);
    if (type === ARP) this.#answerArp(plug, frame);
    else if (type === IPV4) this.#pass(plug, framed, frame);
  }

  /** Called when the frames that came together have all entered. */
  settle(): void {
    this.#gateway.flush();
    if (this.#spent < FRAMES || this.#isHeld) return;
    this.#isHeld = true;
    for (const plug of this.#members.values()) plug.hold();
  }

  onRoom(plug: Plug): void {
    this.#gateway.onRoom(plug);
  }

  /** A period is over. */
  renew(): void {
    this.#spent = Math.max(0, this.#spent - FRAMES);
    if (!this.#isHeld || this.#spent >= FRAMES) return;
    this.#isHeld = false;
    for (const plug of this.#members.values()) plug.release();
  }

  tick(): void {
    this.#gateway.tick();
  }

  /** Questions are answered here and never reach another machine, so that none can lie to another. */
  #answerArp(plug: Plug, frame: Buffer): void {
    const question = arpQuestionIn(frame);
    if (question === null || question.sender !== plug.ip || plug.mac.compare(question.senderMac) !== 0)
      return;
    const mac = this.#gateway.isService(question.target)
      ? this.#gateway.mac
      : this.#members.get(question.target)?.mac;
    if (mac !== undefined && question.target !== plug.ip) this.#gateway.answerArp(plug, question, mac);
  }

  #pass(plug: Plug, framed: Buffer, frame: Buffer): void {
    const packet = ipPacketIn(frame);
    if (packet === null || packet.from !== plug.ip) return;
    const target = this.#members.get(packet.to);
    if (this.#gateway.isService(packet.to)) this.#gateway.receive(plug, packet);
    else if (target !== undefined && target !== plug && target.mac.compare(frame, 0, 6) === 0)
      target.send(framed);
  }
}
