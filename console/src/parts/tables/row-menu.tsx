/** The menu of a row, rendered when it is opened: hundreds of menus would block the page. */
import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon } from '@mantine/core';
import { type ComponentProps, type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';

type ButtonProps = Pick<
  ComponentProps<'button'>,
  'type' | 'aria-haspopup' | 'aria-label' | 'onClick' | 'ref'
>;

/** For Mantine's `Menu`. */
export interface RowMenuState {
  readonly opened: boolean;
  readonly onChange: (isOpen: boolean) => void;
}

interface RowMenuProps {
  /** Name of the button. */
  readonly label: string;
  /** Default: three dots. */
  readonly button?: (props: ButtonProps) => ReactElement;
  /** `target` belongs into `Menu.Target`. */
  readonly children: (menu: RowMenuState, target: ReactElement) => ReactNode;
}

export function RowMenu({ label, button = dots, children }: RowMenuProps) {
  const [isWanted, setWanted] = useState(false);
  const named = { type: 'button', 'aria-haspopup': 'menu', 'aria-label': label } as const;
  if (!isWanted) return button({ ...named, onClick: () => setWanted(true) });
  return <WantedMenu target={(ref) => button({ ...named, ref })}>{children}</WantedMenu>;
}

interface WantedMenuProps {
  readonly target: (ref: ButtonProps['ref']) => ReactElement;
  readonly children: RowMenuProps['children'];
}

/** Replaces the pressed button, keeps the focus, and opens. */
function WantedMenu({ target, children }: WantedMenuProps) {
  const [opened, setOpened] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    button.current?.focus();
    setOpened(true);
  }, []);
  return children({ opened, onChange: setOpened }, target(button));
}

const dots = (props: ButtonProps) => (
  <ActionIcon variant="subtle" color="gray" size="lg" {...props}>
    <EllipsisHorizontalIcon width={20} aria-hidden />
  </ActionIcon>
);
