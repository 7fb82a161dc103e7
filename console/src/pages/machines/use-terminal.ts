/** A terminal in an element of the page, on the serial line of a machine. */
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { type RefObject, useEffect, useRef, useState } from 'react';
import { copyText } from '../../parts/commands/copy.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { type LineState, SerialLine } from './serial-line.ts';

const SCROLLBACK_LINES = 10_000;
/** Dark in both themes, as most programs expect. */
const COLORS = { background: '#161514', foreground: '#e6e4df', cursor: '#4fb0a5' };

export interface TerminalHandle {
  readonly state: LineState;
  /** Types a text. */
  readonly type: (words: string) => void;
  /** Presses a key that on-screen keyboards lack: the end of its sequence, such as `A` for up. */
  readonly arrow: (end: string) => void;
  /** The next letter is typed with Ctrl. */
  readonly isControl: boolean;
  readonly setControl: (isControl: boolean) => void;
  /** Types the command that sets the guest's terminal size. */
  readonly tellSize: () => void;
  readonly reconnect: () => void;
}

/** `onLeave`: the keys for leaving were pressed. */
export function useTerminal(
  container: RefObject<HTMLDivElement | null>,
  vmId: string,
  onLeave: () => void,
): TerminalHandle {
  const [state, setState] = useState<LineState>('connecting');
  const [attempt, setAttempt] = useState(0);
  const [isControl, setControl] = useState(false);
  const control = useRef(false);
  control.current = isControl;
  const parts = useRef<{ terminal: Terminal; line: SerialLine } | null>(null);
  const leave = useRef(onLeave);
  leave.current = onLeave;
  // biome-ignore lint/correctness/useExhaustiveDependencies: an attempt more opens it anew
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const terminal = openTerminal(element, () => leave.current());
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    fit.fit();
    // A shell asks for the cursor position; answers to old queries would be typed into the guest.
    let isSilent = false;
    const line = new SerialLine(vmId, {
      onOpen: () => terminal.reset(),
      onBytes: (bytes, isOld) => {
        isSilent ||= isOld;
        terminal.write(bytes, () => {
          if (isOld) isSilent = false;
        });
      },
      onState: setState,
    });
    terminal.onData((typed) => {
      if (isSilent) return;
      line.send(control.current ? withControl(typed) : typed);
      setControl(false);
    });
    const sizes = new ResizeObserver(() => fit.fit());
    sizes.observe(element);
    terminal.focus();
    parts.current = { terminal, line };
    return () => {
      sizes.disconnect();
      line.close();
      terminal.dispose();
    };
  }, [container, vmId, attempt]);
  const type = (words: string) => {
    parts.current?.line.send(words);
    parts.current?.terminal.focus();
  };
  return {
    state,
    type,
    arrow: (end) => type(`\x1b${parts.current?.terminal.modes.applicationCursorKeysMode ? 'O' : '['}${end}`),
    isControl,
    setControl: (next) => {
      setControl(next);
      parts.current?.terminal.focus();
    },
    tellSize: () => {
      const { rows = 24, cols = 80 } = parts.current?.terminal ?? {};
      type(` stty rows ${rows} cols ${cols}\r`);
    },
    reconnect: () => setAttempt((before) => before + 1),
  };
}

/** `c` becomes Ctrl+C; other text stays. */
function withControl(typed: string): string {
  return /^[@-_a-z]$/.test(typed) ? String.fromCharCode(typed.toUpperCase().charCodeAt(0) - 64) : typed;
}

function openTerminal(element: HTMLElement, onLeave: () => void): Terminal {
  letSpansHaveStyles();
  const terminal = new Terminal({
    scrollback: SCROLLBACK_LINES,
    fontFamily: getComputedStyle(document.body).getPropertyValue('--mantine-font-family-monospace'),
    fontSize: 13,
    cursorBlink: true,
    theme: COLORS,
  });
  terminal.open(element);
  terminal.textarea?.setAttribute('aria-label', machineText.console.label);
  // Terminals have no code for these keys, so no program in the guest misses them.
  terminal.attachCustomKeyEventHandler((event) => {
    const isLeave = event.ctrlKey && event.key === '.';
    if (isLeave && event.type === 'keydown') onLeave();
    // Ctrl+C is for the guest. Browsers paste with Ctrl+Shift+V by themselves.
    const isCopy = event.ctrlKey && event.shiftKey && event.code === 'KeyC' && terminal.hasSelection();
    if (isCopy && event.type === 'keydown') {
      event.preventDefault();
      void copyText(terminal.getSelection()).then(() => terminal.focus());
    }
    return !isLeave && !isCopy;
  });
  return terminal;
}

/**
 * The terminal writes true colours as `style` attributes of spans. The page's policy blocks those,
 * but a script may set the same styles.
 */
function letSpansHaveStyles(): void {
  const { prototype } = HTMLSpanElement;
  if (Object.hasOwn(prototype, 'setAttribute')) return;
  const { setAttribute } = prototype;
  prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}
