/** A line that expands the content below. */
import { Collapse, UnstyledButton } from '@mantine/core';
import { type ComponentType, type ReactNode, type SVGProps, useId, useState } from 'react';
import classes from '../parts.module.css';

interface FoldProps {
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  readonly label: string;
  /** Opens it, even if the reader closed it: something below must be fixed. */
  readonly isNeeded?: boolean;
  readonly children: ReactNode;
}

export function Fold({ icon: Icon, label, isNeeded = false, children }: FoldProps) {
  const [isChosen, setChosen] = useState(false);
  const isOpen = isChosen || isNeeded;
  const id = useId();
  return (
    <div>
      <UnstyledButton
        className={classes.foldToggle ?? ''}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setChosen(!isOpen)}
      >
        <Icon width={16} aria-hidden /> {label}
      </UnstyledButton>
      <Collapse expanded={isOpen} id={id}>
        {children}
      </Collapse>
    </div>
  );
}
