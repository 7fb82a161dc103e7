/**
 * The network of one account: forwards frames between its machines and to its services. A machine
 * may only use its own two addresses, and anything that is neither ARP nor IPv4 is dropped.
 */
import { Gateway, type GatewayDeps } from './gateway.ts';
import { ARP, arpQuestionIn, ETHERNET_BYTES, IPV4, ipPacketIn, LENGTH_BYTES } from './packets.ts';
import type { SwitchPort } from './switch-port.ts';

/** Maximum frames of one account's machines per period; more wait in their guests. */
const FRAMES = 400;
export const PERIOD_MS = 20;

export class AccountNetwork {
  readonly #members = new Map<number, SwitchPort>();
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
  join(port: SwitchPort): boolean {
    if (this.#members.has(port.ip)) return false;
    this.#members.set(port.ip, port);
    if (this.#isHeld) port.hold();
    return true;
  }

  leave(port: SwitchPort): void {
    if (this.#members.get(port.ip) === port) this.#members.delete(port.ip);
    this.#gateway.leave(port);
  }

  /** Processes a frame with its length prefix. */
  enter(port: SwitchPort, framed: Buffer): void {
    this.#spent++;
    const frame = framed.subarray(LENGTH_BYTES);
    if (frame.length < ETHERNET_BYTES || port.mac.compare(frame, 6, 12) !== 0) return;
    const type = frame.readUInt16BE(12);
    if (type === ARP) this.#answerArp(port, frame);
    else if (type === IPV4) this.#pass(port, framed, frame);
  }

  /** Called after all frames that arrived together were processed. */
  settle(): void {
    this.#gateway.flush();
    if (this.#spent < FRAMES || this.#isHeld) return;
    this.#isHeld = true;
    for (const port of this.#members.values()) port.hold();
  }

  onRoom(port: SwitchPort): void {
    this.#gateway.onRoom(port);
  }

  /** A period has ended. */
  renew(): void {
    this.#spent = Math.max(0, this.#spent - FRAMES);
    if (!this.#isHeld || this.#spent >= FRAMES) return;
    this.#isHeld = false;
    for (const port of this.#members.values()) port.release();
  }

  tick(): void {
    this.#gateway.tick();
  }

  /** ARP requests are answered here and never reach another machine, so that none can spoof another. */
  #answerArp(port: SwitchPort, frame: Buffer): void {
    const question = arpQuestionIn(frame);
    if (question === null || question.sender !== port.ip || port.mac.compare(question.senderMac) !== 0)
      return;
    const mac = this.#gateway.isService(question.target)
      ? this.#gateway.mac
      : this.#members.get(question.target)?.mac;
    if (mac !== undefined && question.target !== port.ip) this.#gateway.answerArp(port, question, mac);
  }

  #pass(port: SwitchPort, framed: Buffer, frame: Buffer): void {
    const packet = ipPacketIn(frame);
    if (packet === null || packet.from !== port.ip) return;
    const target = this.#members.get(packet.to);
    if (this.#gateway.isService(packet.to)) this.#gateway.receive(port, packet);
    else if (target !== undefined && target !== port && target.mac.compare(frame, 0, 6) === 0)
      target.send(framed);
  }
}
