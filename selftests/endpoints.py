#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Both ends of TCP connections for the tests in shell, over the loopback of the namespace it runs in.
#
#   endpoints.py set ALGORITHM       setsockopt(TCP_CONGESTION): prints the algorithm in use, or the error
#   endpoints.py default [ADDRESS]   prints the algorithm that a connection to ADDRESS got by itself
#   endpoints.py hold ALGORITHM      keeps a connection open until it is killed; prints "holding"
#   endpoints.py traffic ALGORITHM   writes small and large with NODELAY until it is killed; "traffic"

import errno
import socket
import sys
import threading
import time


def algorithm(sock):
    """TCP_CONGESTION."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def choose(sock, name):
    """setsockopt(TCP_CONGESTION)."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def pair(name=None, address="127.0.0.1"):
    """A connection whose sides both use the algorithm: a listener without one that needs ECN refuses
    ECN to a SYN that carries ECT, and DCTCP would fall back to Reno."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    if name:
        choose(listener, name)
    listener.bind((address, 0))
    listener.listen(1)
    near = socket.socket(family)
    if name:
        choose(near, name)
    near.connect(listener.getsockname())
    return near, listener.accept()[0]


def drain(sock):
    """Reads until the end."""
    while sock.recv(65536):
        pass


def main():
    """One of the four."""
    what, argument = sys.argv[1], (sys.argv[2:] + [None])[0]
    try:
        if what == "default":
            print(algorithm(pair(address=argument or "127.0.0.1")[0]))
            return 0
        near, far = pair(argument)
    except OSError as error:
        print(errno.errorcode[error.errno])
        return 1
    if what == "set":
        print(algorithm(near))
        return 0
    if what == "hold":
        print("holding", flush=True)
        time.sleep(600)
    threading.Thread(target=drain, args=[far], daemon=True).start()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print("traffic", flush=True)
    while True:
        near.send(b"x" * 3000)
        near.send(b"x" * 5)
        # Leave some of the machine to what is being tested.
        time.sleep(0.002)
    return 0


sys.exit(main())
